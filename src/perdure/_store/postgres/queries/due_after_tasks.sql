-- due_after_tasks: open questions that wait for another task (topic ~task and its id) which has ended.
SELECT tasks.uid, tasks.id, path, question, other.uid, other.status
FROM perdure.pauses JOIN perdure.tasks ON tasks.uid = pauses.task_uid
JOIN perdure.tasks AS other ON other.namespace = tasks.namespace AND other.id = substr(topic, 7) AND other.is_current
WHERE answer IS NULL AND topic >= '~task ' AND topic < '~task!' AND tasks.namespace = %(namespace)s::text
  AND tasks.status IN ('pending', 'running', 'paused') AND other.status IN ('completed', 'failed', 'cancelled')
ORDER BY tasks.uid, path LIMIT %(limit)s::bigint;
