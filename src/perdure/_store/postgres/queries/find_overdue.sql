-- find_overdue: unfinished tasks of durable functions whose time is over, and the moment of the next.
SELECT tasks.uid, tasks.id, calls.deadline_at
FROM perdure.calls JOIN perdure.tasks ON tasks.uid = calls.task_uid
WHERE calls.deadline_at IS NOT NULL AND tasks.namespace = %(namespace)s::text
  AND tasks.status IN ('pending', 'running', 'paused')
ORDER BY calls.deadline_at, tasks.uid LIMIT %(limit)s::bigint;
