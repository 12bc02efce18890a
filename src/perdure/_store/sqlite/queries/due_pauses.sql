-- due_pauses: open questions that are to be looked at at some moment, the earliest first: those that wait for
-- a check of the world outside (topic ~poll), or the others. Those of tasks that have ended are among them, so
-- that somebody takes them out of the way. By the index of moments, not by all tasks: few of them wait.
SELECT tasks.uid, tasks.id, tasks.status, path, reason, topic, question, asked_at, pauses.due_at
FROM pauses INDEXED BY pauses_due CROSS JOIN tasks ON tasks.uid = pauses.task_uid
WHERE tasks.namespace = :namespace AND answer IS NULL AND pauses.due_at IS NOT NULL
  AND (COALESCE(topic, '') = '~poll') = (:polls = 1)
ORDER BY pauses.due_at, pauses.task_uid, path LIMIT :limit;
