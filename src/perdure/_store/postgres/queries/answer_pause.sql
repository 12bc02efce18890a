-- answer_pause: answer a question; the first answer stands. A task that waits for its questions is resumed. A task that
-- was paused from outside (its last attempt did not end by pausing) stays paused. The outcome of an effect (topic
-- ~effect) can be given after the task has ended too. With `line` only the question of that line is answered, because a
-- later line asks its own questions at the same paths.
WITH waits AS (
  SELECT 1 FROM perdure.tasks
  WHERE uid = %(uid)s::text AND status = 'paused'
    AND (SELECT ended FROM perdure.attempts WHERE task_uid = %(uid)s::text ORDER BY number DESC LIMIT 1) = 'paused'
),
answered AS (
  UPDATE perdure.pauses SET answer = %(answer)s::bytea, answered_at = %(at)s::bigint, answered_by = %(author)s::text
  WHERE task_uid = %(uid)s::text AND path = %(path)s::text AND answer IS NULL
    AND EXISTS (SELECT 1 FROM perdure.tasks
                WHERE uid = %(uid)s::text AND (%(line)s::bigint IS NULL OR line = %(line)s::bigint)
                  AND (status IN ('pending', 'running', 'paused') OR pauses.topic = '~effect'))
  RETURNING path
),
changed AS (
  UPDATE perdure.tasks
  SET status = CASE WHEN EXISTS (SELECT 1 FROM waits) THEN 'running' ELSE status END,
      pause_reason = CASE WHEN EXISTS (SELECT 1 FROM waits) THEN NULL ELSE pause_reason END,
      pause = CASE WHEN EXISTS (SELECT 1 FROM waits) THEN NULL ELSE pause END,
      due_at = CASE WHEN EXISTS (SELECT 1 FROM waits) THEN NULL ELSE due_at END,
      version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  FROM answered WHERE uid = %(uid)s::text
  RETURNING uid, event_count, event_head
),
--> event
SELECT path FROM answered;
