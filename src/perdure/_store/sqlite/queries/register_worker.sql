-- register_worker: add the row by which other processes find this one.
INSERT INTO workers (id, host, boot_id, pid_ns, pid, pid_start, user, lease_ms, started_at)
VALUES (:worker, :host, :boot_id, :pid_ns, :pid, :pid_start, :user, :lease_ms, :at)
ON CONFLICT (id) DO UPDATE SET beats = beats + 1
RETURNING id;
