-- drop_webhook: a webhook and its messages are gone, if nobody has changed it since it was read. `uid` is the namespace.
DELETE FROM webhooks WHERE namespace = :uid AND id = :id AND version = :version
RETURNING id;
DELETE FROM hook_deliveries WHERE namespace = :uid AND webhook = :id;
