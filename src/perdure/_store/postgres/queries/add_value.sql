-- add_value: store a value under a name that is free.
INSERT INTO perdure.shelf (owner, kind, key, version, due_at, changed_at, author, value)
VALUES (%(uid)s::text, %(kind)s::text, %(key)s::text, 1, %(due_at)s::bigint, %(at)s::bigint, %(author)s::text, %(value)s::bytea)
ON CONFLICT DO NOTHING
RETURNING version;
