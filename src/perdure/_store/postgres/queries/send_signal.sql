-- send_signal: give a signal to the oldest open question that waits for its name, and resume a task that waits for its
-- questions; if no question waits, the signal is kept for the next one. With `once` a signal with the same mark is
-- refused.
WITH waiting AS (
  SELECT path FROM perdure.pauses
  WHERE task_uid = %(uid)s::text AND topic = %(name)s::text AND answer IS NULL
  ORDER BY asked_at, path LIMIT 1
),
waits AS (
  SELECT 1 FROM perdure.tasks
  WHERE uid = %(uid)s::text AND status = 'paused' AND EXISTS (SELECT 1 FROM waiting)
    AND (SELECT ended FROM perdure.attempts WHERE task_uid = %(uid)s::text ORDER BY number DESC LIMIT 1) = 'paused'
),
changed AS (
  UPDATE perdure.tasks
  SET status = CASE WHEN EXISTS (SELECT 1 FROM waits) THEN 'running' ELSE status END,
      pause_reason = CASE WHEN EXISTS (SELECT 1 FROM waits) THEN NULL ELSE pause_reason END,
      pause = CASE WHEN EXISTS (SELECT 1 FROM waits) THEN NULL ELSE pause END,
      due_at = CASE WHEN EXISTS (SELECT 1 FROM waits) THEN NULL ELSE due_at END,
      version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND status IN ('pending', 'running', 'paused')
    AND NOT EXISTS (SELECT 1 FROM perdure.signals WHERE task_uid = %(uid)s::text AND once = %(once)s::text)
  RETURNING uid, event_count, event_head
),
kept AS (
  INSERT INTO perdure.signals (task_uid, name, number, value, sent_at, sent_by, taken_by, once)
  SELECT uid, %(name)s::text,
         (SELECT COALESCE(max(number), 0) + 1 FROM perdure.signals
          WHERE task_uid = %(uid)s::text AND name = %(name)s::text),
         %(value)s::bytea, %(at)s::bigint, %(author)s::text, (SELECT path FROM waiting), %(once)s::text
  FROM changed
  RETURNING number
),
answered AS (
  UPDATE perdure.pauses SET answer = %(value)s::bytea, answered_at = %(at)s::bigint, answered_by = %(author)s::text
  WHERE task_uid = %(uid)s::text AND path = (SELECT path FROM waiting) AND EXISTS (SELECT 1 FROM changed)
),
--> event
SELECT number FROM kept;
