-- put_chunk: store one part of a value that is too large for one row, before the row that names it. gc finds a chunk
-- whose row was never written.
INSERT INTO perdure.chunks (task_uid, owner, n, body)
VALUES (%(uid)s::text, %(owner)s::text, %(n)s::bigint, %(chunk_body)s::bytea)
ON CONFLICT DO NOTHING
RETURNING n;
