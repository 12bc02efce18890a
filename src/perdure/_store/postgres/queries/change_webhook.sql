-- change_webhook: replace the record of a webhook, unless it was changed since it was read. `uid` is the namespace.
UPDATE perdure.webhooks SET version = version + 1, changed_at = %(at)s::bigint, author = %(author)s::text, record = %(record)s::bytea
WHERE namespace = %(uid)s::text AND id = %(id)s::text AND version = %(version)s::bigint
RETURNING version;
