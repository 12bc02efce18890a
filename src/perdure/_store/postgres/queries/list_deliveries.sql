-- list_deliveries: the messages of a webhook, newest first; with `state`, only those in that state.
SELECT id, webhook, task_uid, number, event, made_at, due_at, tries, state, status, sent_at, took_ms, body, answer
FROM perdure.hook_deliveries WHERE namespace = %(namespace)s::text AND webhook = %(webhook)s::text AND id < %(before)s::text
  AND (%(state)s::text = '' OR state = %(state)s::text)
ORDER BY id DESC LIMIT %(limit)s::bigint;
