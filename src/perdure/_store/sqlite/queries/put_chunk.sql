-- put_chunk: a part of bytes too large for one row; it goes ahead of the row that names it.
-- A chunk whose row never came is found by gc.
INSERT INTO chunks (task_uid, owner, n, body) VALUES (:uid, :owner, :n, :chunk_body)
ON CONFLICT DO NOTHING
RETURNING n;
