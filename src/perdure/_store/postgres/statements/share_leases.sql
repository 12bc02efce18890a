-- share_leases: share-lock the leases of a batch that depends on them without changing them.
SELECT 1 FROM perdure.leases WHERE task_uid = ANY (%(ids)s::text[]) ORDER BY task_uid FOR SHARE;
