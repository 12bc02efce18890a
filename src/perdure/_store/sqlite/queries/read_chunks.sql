-- read_chunks: the parts of bytes too large for one row.
SELECT body FROM chunks WHERE task_uid = :uid AND owner = :owner ORDER BY n;
