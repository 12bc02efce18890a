-- due_after_tasks: open questions that wait for another task (topic ~task and its id) which has ended.
SELECT tasks.uid, tasks.id, path, question, other.uid, other.status
FROM pauses INDEXED BY pauses_on_tasks CROSS JOIN tasks ON tasks.uid = pauses.task_uid
CROSS JOIN tasks AS other ON other.namespace = tasks.namespace AND other.id = substr(topic, 7) AND other.is_current
WHERE answer IS NULL AND topic IS NOT NULL AND topic >= '~task ' AND topic < '~task!' AND tasks.namespace = :namespace
  AND tasks.status IN ('pending', 'running', 'paused') AND other.status IN ('completed', 'failed', 'cancelled')
ORDER BY tasks.uid, path LIMIT :limit;
