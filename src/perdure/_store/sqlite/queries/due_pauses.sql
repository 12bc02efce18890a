-- due_pauses: open questions with a due moment, earliest first: those that wait for a check of the outside world (topic
-- ~poll), or the others. Questions of ended tasks are included, so that a worker can clear them. It reads the index of
-- due moments rather than all tasks, because few tasks wait.
SELECT tasks.uid, tasks.id, tasks.status, path, reason, topic, question, asked_at, pauses.due_at
FROM pauses INDEXED BY pauses_due CROSS JOIN tasks ON tasks.uid = pauses.task_uid
WHERE tasks.namespace = :namespace AND answer IS NULL AND pauses.due_at IS NOT NULL
  AND (COALESCE(topic, '') = '~poll') = (:polls = 1)
ORDER BY pauses.due_at, pauses.task_uid, path LIMIT :limit;
