-- add_delivery: add one message for a webhook. Its id is made from its event, so adding it again is refused.
-- `uid` is the namespace.
INSERT INTO perdure.hook_deliveries (id, namespace, webhook, task_uid, number, event, made_at, due_at, tries, state, body)
SELECT %(id)s::text, %(uid)s::text, %(webhook)s::text, %(task_uid)s::text, %(number)s::bigint, %(event)s::text, %(at)s::bigint, %(due_at)s::bigint, 0, 'due', %(body)s::bytea
WHERE EXISTS (SELECT 1 FROM perdure.webhooks WHERE namespace = %(uid)s::text AND id = %(webhook)s::text)
ON CONFLICT DO NOTHING
RETURNING id;
