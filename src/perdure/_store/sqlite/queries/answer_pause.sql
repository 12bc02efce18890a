-- answer_pause: answer a question; the first answer stands. A task that waits for its questions is resumed. A task that
-- was paused from outside (its last attempt did not end by pausing) stays paused. The outcome of an effect (topic
-- ~effect) can be given after the task has ended too. With `line` only the question of that line is answered, because a
-- later line asks its own questions at the same paths.
UPDATE pauses SET answer = :answer, answered_at = :at, answered_by = :author
WHERE task_uid = :uid AND path = :path AND answer IS NULL
  AND EXISTS (SELECT 1 FROM tasks
              WHERE uid = :uid AND (:line IS NULL OR line = :line)
                AND (status IN ('pending', 'running', 'paused') OR pauses.topic = '~effect'))
RETURNING path;
UPDATE tasks SET status = 'running', pause_reason = NULL, pause = NULL, due_at = NULL
WHERE uid = :uid AND status = 'paused'
  AND (SELECT ended FROM attempts WHERE task_uid = :uid ORDER BY number DESC LIMIT 1) = 'paused';
UPDATE tasks SET version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid;
--> event
