-- lock_workers: lock the rows of processes that a batch changes.
SELECT 1 FROM perdure.workers WHERE id = ANY (%(ids)s::text[]) ORDER BY id FOR UPDATE;
