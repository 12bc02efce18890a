-- put_chunk: store one part of a value that is too large for one row, before the row that names it. gc finds a chunk
-- whose row was never written.
INSERT INTO chunks (task_uid, owner, n, body) VALUES (:uid, :owner, :n, :chunk_body)
ON CONFLICT DO NOTHING
RETURNING n;
