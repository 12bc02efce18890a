-- get_delivery: one message.
SELECT id, webhook, task_uid, number, event, made_at, due_at, tries, state, status, sent_at, took_ms, body, answer
FROM hook_deliveries WHERE id = :id AND namespace = :namespace;
