-- drop_webhook: delete a webhook and its messages, unless it was changed since it was read. `uid` is the namespace.
DELETE FROM webhooks WHERE namespace = :uid AND id = :id AND version = :version
RETURNING id;
DELETE FROM hook_deliveries WHERE namespace = :uid AND webhook = :id;
