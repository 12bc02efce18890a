-- queue_heads: for each queue, since when its first free task that may begin now has waited.
SELECT calls.queue, min(greatest(tasks.updated_at, COALESCE(calls.not_before, 0))) AS since
FROM perdure.tasks
JOIN perdure.calls ON calls.task_uid = tasks.uid
JOIN perdure.leases ON leases.task_uid = tasks.uid
WHERE tasks.namespace = %(namespace)s::text AND tasks.status IN ('pending', 'running') AND tasks.is_current
  AND tasks.archived_at IS NULL AND leases.worker IS NULL
  AND (tasks.depends_on = '[]' OR tasks.started_at IS NOT NULL
       OR (tasks.status = 'running' AND NOT EXISTS (
         SELECT 1 FROM jsonb_array_elements_text(tasks.depends_on::jsonb) AS wanted (value)
         WHERE (SELECT other.status FROM perdure.tasks AS other
                WHERE other.namespace = tasks.namespace AND other.id = wanted.value AND other.is_current)
               IS DISTINCT FROM 'completed')))
  AND (calls.not_before IS NULL OR calls.not_before <= %(now)s::bigint)
  AND NOT EXISTS (SELECT 1 FROM perdure.switches
                  WHERE switches.namespace = %(namespace)s::text AND switches.id IN ('', tasks.id) AND is_on)
GROUP BY calls.queue ORDER BY since, calls.queue LIMIT %(limit)s::bigint;
