-- read_chunks: the parts of a value that is too large for one row.
SELECT body FROM chunks WHERE task_uid = :uid AND owner = :owner ORDER BY n;
