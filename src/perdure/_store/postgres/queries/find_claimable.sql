-- find_claimable: tasks of these functions that somebody should work on, with who holds them, if anybody.
SELECT tasks.uid, tasks.id, calls.function, calls.version, leases.worker
FROM perdure.calls
JOIN perdure.tasks ON tasks.uid = calls.task_uid
JOIN perdure.leases ON leases.task_uid = calls.task_uid
WHERE tasks.namespace = %(namespace)s::text AND tasks.status IN ('pending', 'running')
  AND calls.queue IN (SELECT jsonb_array_elements_text(%(queues)s::jsonb))
  AND calls.function IN (SELECT jsonb_array_elements_text(%(functions)s::jsonb))
ORDER BY calls.priority DESC, tasks.uid LIMIT %(limit)s::bigint;
