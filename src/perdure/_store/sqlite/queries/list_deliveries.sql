-- list_deliveries: the messages of a webhook, newest first; with `state`, only those in that state.
SELECT id, webhook, task_uid, number, event, made_at, due_at, tries, state, status, sent_at, took_ms, body, answer
FROM hook_deliveries WHERE namespace = :namespace AND webhook = :webhook AND id < :before
  AND (:state = '' OR state = :state)
ORDER BY id DESC LIMIT :limit;
