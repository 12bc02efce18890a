-- add_webhook: add a webhook under an id that is free. `uid` is the namespace.
INSERT INTO webhooks (namespace, id, version, changed_at, author, record)
VALUES (:uid, :id, 1, :at, :author, :record)
ON CONFLICT DO NOTHING
RETURNING version;
