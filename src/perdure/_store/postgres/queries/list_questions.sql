-- list_questions: every open question of a namespace, oldest first. Of ended tasks, only questions about effects (topic
-- ~effect) are included.
SELECT tasks.uid, tasks.id, path, reason, topic, question, asked_at, pauses.due_at
FROM perdure.pauses JOIN perdure.tasks ON tasks.uid = pauses.task_uid
WHERE tasks.namespace = %(namespace)s::text AND answer IS NULL
  AND (tasks.status IN ('pending', 'running', 'paused') OR topic = '~effect')
ORDER BY asked_at, path, task_uid LIMIT %(limit)s::bigint;
