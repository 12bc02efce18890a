-- send_signal: give a signal to the oldest open question that waits for its name, and resume a task that waits for its
-- questions; if no question waits, the signal is kept for the next one. With `once` a signal with the same mark is
-- refused.
INSERT INTO signals (task_uid, name, number, value, sent_at, sent_by, taken_by, once)
SELECT uid, :name, (SELECT COALESCE(max(number), 0) + 1 FROM signals WHERE task_uid = :uid AND name = :name),
       :value, :at, :author,
       (SELECT path FROM pauses WHERE task_uid = :uid AND topic = :name AND answer IS NULL
        ORDER BY asked_at, path LIMIT 1), :once
FROM tasks WHERE uid = :uid AND status IN ('pending', 'running', 'paused')
  AND NOT EXISTS (SELECT 1 FROM signals WHERE task_uid = :uid AND once = :once)
RETURNING number;
UPDATE tasks SET status = 'running', pause_reason = NULL, pause = NULL, due_at = NULL
WHERE uid = :uid AND status = 'paused'
  AND (SELECT ended FROM attempts WHERE task_uid = :uid ORDER BY number DESC LIMIT 1) = 'paused'
  AND EXISTS (SELECT 1 FROM pauses WHERE task_uid = :uid AND topic = :name AND answer IS NULL);
UPDATE pauses SET answer = :value, answered_at = :at, answered_by = :author
WHERE task_uid = :uid AND topic = :name AND answer IS NULL
  AND path = (SELECT path FROM pauses WHERE task_uid = :uid AND topic = :name AND answer IS NULL
              ORDER BY asked_at, path LIMIT 1);
UPDATE tasks SET version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid;
--> event
