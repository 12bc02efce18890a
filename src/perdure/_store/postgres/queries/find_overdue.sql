-- find_overdue: unfinished tasks of durable functions by the moment their time is over, from a moment on: who has
-- looked before need not go through all that has ended since then.
SELECT tasks.uid, tasks.id, calls.deadline_at
FROM perdure.calls JOIN perdure.tasks ON tasks.uid = calls.task_uid
WHERE calls.deadline_at > %(since)s::bigint AND tasks.namespace = %(namespace)s::text
  AND tasks.status IN ('pending', 'running', 'paused')
ORDER BY calls.deadline_at, tasks.uid LIMIT %(limit)s::bigint;
