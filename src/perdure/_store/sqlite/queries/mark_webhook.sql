-- mark_webhook: record which process sends to a webhook, and since when every try has failed. The version stays,
-- because no setting of an operator changes. Refused when another process has taken the post meanwhile. `uid` is the
-- namespace.
UPDATE webhooks SET worker = :worker, failing_since = :failing_since
WHERE namespace = :uid AND id = :id AND worker = :old_worker
RETURNING id;
