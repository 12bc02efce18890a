-- read_undelivered: unfinished tasks, and tasks that ended since a moment, with events that a handler has not received.
-- `since` is when the handler was first known: tasks that have not changed since then are left out.
SELECT tasks.uid, tasks.id, tasks.event_count, COALESCE(deliveries.delivered, 0)
FROM perdure.tasks
LEFT JOIN perdure.deliveries ON deliveries.task_uid = tasks.uid AND deliveries.handler = %(handler)s::text
WHERE tasks.namespace = %(namespace)s::text AND tasks.event_count > COALESCE(deliveries.delivered, 0)
  AND tasks.updated_at >= %(since)s::bigint
  AND tasks.uid IN (
    SELECT uid FROM perdure.tasks WHERE namespace = %(namespace)s::text AND status IN ('pending', 'running', 'paused')
      AND is_current AND archived_at IS NULL
    UNION ALL
    SELECT uid FROM perdure.tasks WHERE namespace = %(namespace)s::text AND finished_at >= %(ended_since)s::bigint
  )
ORDER BY tasks.uid LIMIT %(limit)s::bigint;
