-- put_chunk: a part of bytes too large for one row; it goes ahead of the row that names it.
-- A chunk whose row never came is found by gc.
INSERT INTO perdure.chunks (task_uid, owner, n, body)
VALUES (%(uid)s::text, %(owner)s::text, %(n)s::bigint, %(chunk_body)s::bytea)
ON CONFLICT DO NOTHING
RETURNING n;
