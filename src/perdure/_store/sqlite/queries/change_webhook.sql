-- change_webhook: replace the record of a webhook, unless it was changed since it was read. `uid` is the namespace.
UPDATE webhooks SET version = version + 1, changed_at = :at, author = :author, record = :record
WHERE namespace = :uid AND id = :id AND version = :version
RETURNING version;
