-- queue_heads: for each queue, since when its first free task that may begin now has waited.
SELECT calls.queue, min(max(tasks.updated_at, COALESCE(calls.not_before, 0))) AS since
FROM tasks JOIN calls ON calls.task_uid = tasks.uid JOIN leases ON leases.task_uid = tasks.uid
WHERE tasks.namespace = :namespace AND tasks.status IN ('pending', 'running') AND tasks.is_current
  AND tasks.archived_at IS NULL AND leases.worker IS NULL
  AND (tasks.depends_on = '[]' OR tasks.started_at IS NOT NULL
       OR (tasks.status = 'running' AND NOT EXISTS (
         SELECT 1 FROM json_each(tasks.depends_on) AS wanted LEFT JOIN tasks AS other
           ON other.namespace = tasks.namespace AND other.id = wanted.value AND other.is_current
         WHERE other.status IS NOT 'completed')))
  AND (calls.not_before IS NULL OR calls.not_before <= :now)
  AND NOT EXISTS (SELECT 1 FROM switches
                  WHERE switches.namespace = :namespace AND switches.id IN ('', tasks.id) AND is_on)
GROUP BY calls.queue ORDER BY since, calls.queue LIMIT :limit;
