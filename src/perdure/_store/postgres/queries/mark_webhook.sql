-- mark_webhook: record which process sends to a webhook, and since when every try has failed. The version stays,
-- because no setting of an operator changes. Refused when another process has taken the post meanwhile. `uid` is the
-- namespace.
UPDATE perdure.webhooks SET worker = %(worker)s::text, failing_since = %(failing_since)s::bigint
WHERE namespace = %(uid)s::text AND id = %(id)s::text AND worker = %(old_worker)s::text
RETURNING id;
