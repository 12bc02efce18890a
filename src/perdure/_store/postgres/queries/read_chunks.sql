-- read_chunks: the parts of a value that is too large for one row.
SELECT body FROM perdure.chunks WHERE task_uid = %(uid)s::text AND owner = %(owner)s::text ORDER BY n;
