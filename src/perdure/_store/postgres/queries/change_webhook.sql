-- change_webhook: another record of a webhook, if nobody has changed it since it was read. `uid` is the namespace.
UPDATE perdure.webhooks SET version = version + 1, changed_at = %(at)s::bigint, author = %(author)s::text, record = %(record)s::bytea
WHERE namespace = %(uid)s::text AND id = %(id)s::text AND version = %(version)s::bigint
RETURNING version;
