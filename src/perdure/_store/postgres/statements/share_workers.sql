-- share_workers: share-lock the row of the process that claims. It cannot be deleted during the claim, but it can beat.
SELECT 1 FROM perdure.workers WHERE id = ANY (%(ids)s::text[]) ORDER BY id FOR KEY SHARE;
