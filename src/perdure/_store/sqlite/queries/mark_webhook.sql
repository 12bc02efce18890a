-- mark_webhook: which process sends to a webhook, and since when every try has failed. The version stays: nothing that
-- an operator has set is changed. Refused when another process has taken the post meanwhile. `uid` is the namespace.
UPDATE webhooks SET worker = :worker, failing_since = :failing_since
WHERE namespace = :uid AND id = :id AND worker = :old_worker
RETURNING id;
