-- find_overdue: unfinished tasks of durable functions whose time is over, and the moment of the next.
SELECT tasks.uid, tasks.id, calls.deadline_at
FROM calls JOIN tasks ON tasks.uid = calls.task_uid
WHERE calls.deadline_at IS NOT NULL AND tasks.namespace = :namespace
  AND tasks.status IN ('pending', 'running', 'paused')
ORDER BY calls.deadline_at, tasks.uid LIMIT :limit;
