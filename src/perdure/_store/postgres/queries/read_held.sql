-- read_held: every lease with a holder.
SELECT leases.worker, leases.task_uid, tasks.namespace, tasks.id, tasks.status
FROM perdure.leases JOIN perdure.tasks ON tasks.uid = leases.task_uid
WHERE leases.worker IS NOT NULL ORDER BY leases.task_uid;
