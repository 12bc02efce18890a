-- sealed_webhook: what is sealed of a webhook. `uid` is the namespace.
SELECT record FROM webhooks WHERE namespace = :uid AND id = :id;
