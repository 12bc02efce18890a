-- reseal_webhook: seal a record with another key; its version stays. `uid` is the namespace.
UPDATE webhooks SET record = :record
WHERE namespace = :uid AND id = :id AND record = :old_record
RETURNING id;
