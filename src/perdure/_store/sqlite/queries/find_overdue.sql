-- find_overdue: unfinished tasks of durable functions by the moment their time is over, from a moment on: who has
-- looked before need not go through all that has ended since then.
SELECT tasks.uid, tasks.id, calls.deadline_at
FROM calls JOIN tasks ON tasks.uid = calls.task_uid
WHERE calls.deadline_at > :since AND tasks.namespace = :namespace
  AND tasks.status IN ('pending', 'running', 'paused')
ORDER BY calls.deadline_at, tasks.uid LIMIT :limit;
