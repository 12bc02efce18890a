-- read_holder: who may write for a task, and how often that process has beaten.
SELECT leases.epoch, leases.worker, beats, host, boot_id, pid_ns, pid, pid_start, "user", lease_ms
FROM perdure.leases LEFT JOIN perdure.workers ON workers.id = leases.worker
WHERE task_uid = %(uid)s::text;
