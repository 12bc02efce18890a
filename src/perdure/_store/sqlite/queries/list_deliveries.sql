-- list_deliveries: the messages of a webhook, the newest first; with a state, those in it.
SELECT id, webhook, task_uid, number, event, made_at, due_at, tries, state, status, sent_at, took_ms, body, answer
FROM hook_deliveries WHERE namespace = :namespace AND webhook = :webhook AND id < :before
  AND (:state = '' OR state = :state)
ORDER BY id DESC LIMIT :limit;
