-- changed_undelivered: tasks that have changed since a moment and have events that a handler has not received. It reads
-- the index of changes only. Tasks whose id now belongs to another task are left to read_undelivered.
SELECT tasks.uid, tasks.id, tasks.event_count, COALESCE(deliveries.delivered, 0)
FROM tasks
LEFT JOIN deliveries ON deliveries.task_uid = tasks.uid AND deliveries.handler = :handler
WHERE tasks.event_count > COALESCE(deliveries.delivered, 0)
  AND tasks.uid IN (
    SELECT uid FROM tasks WHERE namespace = :namespace AND is_current AND archived_at IS NULL AND updated_at >= :since
      AND status IN ('pending', 'running', 'paused', 'completed', 'failed', 'cancelled') AND hidden IN (0, 1)
    UNION ALL
    SELECT uid FROM tasks WHERE namespace = :namespace AND is_current AND archived_at IS NOT NULL AND updated_at >= :since
      AND status IN ('completed', 'failed', 'cancelled') AND hidden IN (0, 1)
  )
ORDER BY tasks.uid LIMIT :limit;
