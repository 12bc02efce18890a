-- read_held: every lease that somebody has.
SELECT leases.worker, leases.task_uid, tasks.namespace, tasks.id, tasks.status
FROM perdure.leases JOIN perdure.tasks ON tasks.uid = leases.task_uid
WHERE leases.worker IS NOT NULL ORDER BY leases.task_uid;
