-- read_undelivered: tasks with events that a handler has not had: of those that go on, and of those that ended
-- since a moment. `since` is when the handler was first known: tasks that rest since before it are not told.
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
