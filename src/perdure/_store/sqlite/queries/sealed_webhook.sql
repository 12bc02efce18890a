-- sealed_webhook: the sealed part of a webhook. `uid` is the namespace.
SELECT record FROM webhooks WHERE namespace = :uid AND id = :id;
