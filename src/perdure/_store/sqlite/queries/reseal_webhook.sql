-- reseal_webhook: the same record under another key; its version stays. `uid` is the namespace.
UPDATE webhooks SET record = :record
WHERE namespace = :uid AND id = :id AND record = :old_record
RETURNING id;
