-- sealed_webhook: the sealed part of a webhook. `uid` is the namespace.
SELECT record FROM perdure.webhooks WHERE namespace = %(uid)s::text AND id = %(id)s::text;
