-- find_claimable: tasks of these functions that somebody should work on, with who holds them, if anybody.
SELECT tasks.uid, tasks.id, calls.function, calls.version, leases.worker
FROM calls JOIN tasks ON tasks.uid = calls.task_uid JOIN leases ON leases.task_uid = calls.task_uid
WHERE tasks.namespace = :namespace AND tasks.status IN ('pending', 'running')
  AND calls.queue IN (SELECT value FROM json_each(:queues))
  AND calls.function IN (SELECT value FROM json_each(:functions))
ORDER BY calls.priority DESC, tasks.uid LIMIT :limit;
