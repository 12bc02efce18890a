-- read_workers: every process that has registered, and how many leases it holds.
SELECT id, beats, host, boot_id, pid_ns, pid, pid_start, "user", lease_ms, started_at,
       (SELECT count(*) FROM perdure.leases WHERE leases.worker = workers.id)
FROM perdure.workers ORDER BY id;
