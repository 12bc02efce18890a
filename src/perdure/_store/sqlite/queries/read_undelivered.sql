-- read_undelivered: unfinished tasks, and tasks that ended since a moment, with events that a handler has not received.
-- `since` is when the handler was first known: tasks that have not changed since then are left out.
SELECT tasks.uid, tasks.id, tasks.event_count, COALESCE(deliveries.delivered, 0)
FROM tasks
LEFT JOIN deliveries ON deliveries.task_uid = tasks.uid AND deliveries.handler = :handler
WHERE tasks.namespace = :namespace AND tasks.event_count > COALESCE(deliveries.delivered, 0)
  AND tasks.updated_at >= :since
  AND tasks.uid IN (
    SELECT uid FROM tasks WHERE namespace = :namespace AND status IN ('pending', 'running', 'paused')
      AND is_current AND archived_at IS NULL
    UNION ALL
    SELECT uid FROM tasks WHERE namespace = :namespace AND finished_at >= :ended_since
  )
ORDER BY tasks.uid LIMIT :limit;
