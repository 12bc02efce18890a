-- share_leases: the leases of a batch that only depends on them.
SELECT 1 FROM perdure.leases WHERE task_uid = ANY (%(ids)s::text[]) ORDER BY task_uid FOR SHARE;
