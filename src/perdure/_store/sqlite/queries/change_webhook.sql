-- change_webhook: another record of a webhook, if nobody has changed it since it was read. `uid` is the namespace.
UPDATE webhooks SET version = version + 1, changed_at = :at, author = :author, record = :record
WHERE namespace = :uid AND id = :id AND version = :version
RETURNING version;
