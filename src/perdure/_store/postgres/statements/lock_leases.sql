-- lock_leases: lock the leases of a batch that changes some of them.
SELECT 1 FROM perdure.leases WHERE task_uid = ANY (%(ids)s::text[]) ORDER BY task_uid FOR UPDATE;
