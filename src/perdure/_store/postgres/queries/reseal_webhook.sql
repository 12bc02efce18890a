-- reseal_webhook: seal a record with another key; its version stays. `uid` is the namespace.
UPDATE perdure.webhooks SET record = %(record)s::bytea
WHERE namespace = %(uid)s::text AND id = %(id)s::text AND record = %(old_record)s::bytea
RETURNING id;
