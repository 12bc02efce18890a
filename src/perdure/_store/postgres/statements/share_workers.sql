-- share_workers: the process that claims. Its row is not forgotten while the claim is under way; it may beat.
SELECT 1 FROM perdure.workers WHERE id = ANY (%(ids)s::text[]) ORDER BY id FOR KEY SHARE;
