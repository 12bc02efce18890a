-- due_deliveries: the messages of a webhook that are due by the given moment, those due longest first.
SELECT id, webhook, task_uid, number, event, made_at, due_at, tries, state, status, sent_at, took_ms, body, answer
FROM hook_deliveries WHERE namespace = :namespace AND webhook = :webhook AND due_at <= :by
ORDER BY due_at, id LIMIT :limit;
