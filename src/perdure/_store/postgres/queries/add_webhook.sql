-- add_webhook: add a webhook under an id that is free. `uid` is the namespace.
INSERT INTO perdure.webhooks (namespace, id, version, changed_at, author, record)
VALUES (%(uid)s::text, %(id)s::text, 1, %(at)s::bigint, %(author)s::text, %(record)s::bytea)
ON CONFLICT DO NOTHING
RETURNING version;
