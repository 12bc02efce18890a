-- find_claimable: tasks of these functions that are free and may begin now, in the order of their turns. A task's turn
-- depends on how long it has waited. Each point of priority counts as a minute of waiting, so that no task waits for
-- ever. Ties go to the group that was served longest ago. A task that depends on others begins only when they have
-- completed.
SELECT tasks.uid, tasks.id, calls.function, calls.version, leases.epoch, tasks.status, calls.queue, calls.key,
       CASE WHEN leases.epoch = 0 AND tasks.seq = 0 AND tasks.line = 1 AND calls.budget IS NULL AND calls.deadline_at IS NULL
             AND length(calls.arguments) <= 4096 THEN calls.arguments END,
       calls.losses
FROM tasks JOIN calls ON calls.task_uid = tasks.uid JOIN leases ON leases.task_uid = tasks.uid
WHERE tasks.namespace = :namespace AND tasks.status IN ('pending', 'running') AND tasks.is_current
  AND tasks.archived_at IS NULL
  AND (tasks.depends_on = '[]' OR tasks.started_at IS NOT NULL
       OR (tasks.status = 'running' AND NOT EXISTS (
         SELECT 1 FROM json_each(tasks.depends_on) AS wanted LEFT JOIN tasks AS other
           ON other.namespace = tasks.namespace AND other.id = wanted.value AND other.is_current
         WHERE other.status IS NOT 'completed')))
  AND leases.worker IS NULL
  AND (calls.not_before IS NULL OR calls.not_before <= :now)
  AND calls.queue IN (SELECT value FROM json_each(:queues))
  AND NOT EXISTS (SELECT 1 FROM switches
                  WHERE switches.namespace = :namespace AND switches.id IN ('', tasks.id) AND is_on)
  AND (calls.function || ' ' || calls.version IN (SELECT value FROM json_each(:functions))
       OR calls.function IN (SELECT value FROM json_each(:upgrading)))
ORDER BY tasks.status = 'pending', tasks.updated_at - calls.priority * 60000,
         COALESCE(leases.taken_at, 0), tasks.uid LIMIT :limit;
