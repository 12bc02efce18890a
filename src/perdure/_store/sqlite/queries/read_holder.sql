-- read_holder: the process that may write for a task, and its count of beats.
SELECT leases.epoch, leases.worker, beats, host, boot_id, pid_ns, pid, pid_start, user, lease_ms
FROM leases LEFT JOIN workers ON workers.id = leases.worker
WHERE task_uid = :uid;
