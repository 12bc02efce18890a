-- add_delivery: add one message for a webhook. Its id is made from its event, so adding it again is refused.
-- `uid` is the namespace.
INSERT INTO hook_deliveries (id, namespace, webhook, task_uid, number, event, made_at, due_at, tries, state, body)
SELECT :id, :uid, :webhook, :task_uid, :number, :event, :at, :due_at, 0, 'due', :body
WHERE EXISTS (SELECT 1 FROM webhooks WHERE namespace = :uid AND id = :webhook)
ON CONFLICT DO NOTHING
RETURNING id;
