-- answer_pause: the first answer stands; a task that was paused goes on. Whether an effect happened
-- (topic ~effect) may be said after the task has ended too.
UPDATE pauses SET answer = :answer, answered_at = :at, answered_by = :author
WHERE task_uid = :uid AND path = :path AND answer IS NULL
  AND EXISTS (SELECT 1 FROM tasks
              WHERE uid = :uid AND (status IN ('pending', 'running', 'paused') OR pauses.topic = '~effect'))
RETURNING path;
UPDATE tasks SET status = CASE WHEN status = 'paused' THEN 'running' ELSE status END,
                 pause_reason = CASE WHEN status = 'paused' THEN NULL ELSE pause_reason END,
                 pause = CASE WHEN status = 'paused' THEN NULL ELSE pause END,
                 due_at = CASE WHEN status = 'paused' THEN NULL ELSE due_at END,
                 version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid;
--> event
