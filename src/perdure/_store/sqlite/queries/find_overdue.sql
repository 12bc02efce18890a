-- find_overdue: unfinished tasks of durable functions in the order of their deadlines, from a moment on. A worker that
-- has looked before can skip the deadlines it has seen.
SELECT tasks.uid, tasks.id, calls.deadline_at
FROM calls JOIN tasks ON tasks.uid = calls.task_uid
WHERE calls.deadline_at > :since AND tasks.namespace = :namespace
  AND tasks.status IN ('pending', 'running', 'paused')
ORDER BY calls.deadline_at, tasks.uid LIMIT :limit;
