-- read_workers: every registered process: the number of its leases, its announcement and the requests to it.
SELECT id, beats, host, boot_id, pid_ns, pid, pid_start, user, lease_ms, started_at,
       (SELECT count(*) FROM leases WHERE leases.worker = workers.id) AS leases, knows, wish
FROM workers ORDER BY id;
