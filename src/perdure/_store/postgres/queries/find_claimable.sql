-- find_claimable: tasks of these functions that are free and may begin now, in the order of their turns. A task's turn
-- depends on how long it has waited. Each point of priority counts as a minute of waiting, so that no task waits for
-- ever. Ties go to the group that was served longest ago. A task that depends on others begins only when they have
-- completed.
SELECT tasks.uid, tasks.id, calls.function, calls.version, leases.epoch, tasks.status, calls.queue, calls.key,
       CASE WHEN leases.epoch = 0 AND tasks.seq = 0 AND tasks.line = 1 AND calls.budget IS NULL AND calls.deadline_at IS NULL
             AND length(calls.arguments) <= 4096 THEN calls.arguments END,
       calls.losses
FROM perdure.tasks
JOIN perdure.calls ON calls.task_uid = tasks.uid
JOIN perdure.leases ON leases.task_uid = tasks.uid
WHERE tasks.namespace = %(namespace)s::text AND tasks.status IN ('pending', 'running') AND tasks.is_current
  AND tasks.archived_at IS NULL
  AND (tasks.depends_on = '[]' OR tasks.started_at IS NOT NULL
       OR (tasks.status = 'running' AND NOT EXISTS (
         SELECT 1 FROM jsonb_array_elements_text(tasks.depends_on::jsonb) AS wanted (value)
         WHERE (SELECT other.status FROM perdure.tasks AS other
                WHERE other.namespace = tasks.namespace AND other.id = wanted.value AND other.is_current)
               IS DISTINCT FROM 'completed')))
  AND leases.worker IS NULL
  AND (calls.not_before IS NULL OR calls.not_before <= %(now)s::bigint)
  AND calls.queue IN (SELECT jsonb_array_elements_text(%(queues)s::jsonb))
  AND NOT EXISTS (SELECT 1 FROM perdure.switches
                  WHERE switches.namespace = %(namespace)s::text AND switches.id IN ('', tasks.id) AND is_on)
  AND (calls.function || ' ' || calls.version IN (SELECT jsonb_array_elements_text(%(functions)s::jsonb))
       OR calls.function IN (SELECT jsonb_array_elements_text(%(upgrading)s::jsonb)))
ORDER BY tasks.status = 'pending', tasks.updated_at - calls.priority * 60000,
         COALESCE(leases.taken_at, 0), tasks.uid LIMIT %(limit)s::bigint;
