-- list_questions: every open question of a namespace, oldest first; of tasks that have ended, those about
-- effects (topic ~effect).
SELECT tasks.uid, tasks.id, path, reason, topic, question, asked_at, pauses.due_at
FROM pauses JOIN tasks ON tasks.uid = pauses.task_uid
WHERE tasks.namespace = :namespace AND answer IS NULL
  AND (tasks.status IN ('pending', 'running', 'paused') OR topic = '~effect')
ORDER BY asked_at, path, task_uid LIMIT :limit;
