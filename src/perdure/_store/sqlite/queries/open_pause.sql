-- open_pause: ask a question of a durable function, once; only while the lease is ours. With a topic the question waits
-- for a signal of that name. A signal that came earlier answers it at once. A question that exists already takes no
-- signal here: an earlier signal would have answered it.
INSERT INTO pauses (task_uid, path, reason, topic, question, asked_at, due_at, expires_at)
SELECT :uid, :path, :reason, :topic, :question, :at, :due_at, :expires_at
FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker
ON CONFLICT (task_uid, path) DO UPDATE SET path = excluded.path
RETURNING path;
UPDATE signals SET taken_by = :path
WHERE task_uid = :uid AND name = :topic
  AND number = (SELECT min(number) FROM signals WHERE task_uid = :uid AND name = :topic AND taken_by IS NULL)
  AND EXISTS (SELECT 1 FROM pauses WHERE task_uid = :uid AND path = :path AND topic = :topic AND answer IS NULL);
UPDATE pauses SET answer = early.value, answered_at = :at, answered_by = early.sent_by
FROM signals AS early
WHERE pauses.task_uid = :uid AND pauses.path = :path AND pauses.answer IS NULL
  AND early.task_uid = :uid AND early.name = :topic AND early.taken_by = :path;
