-- register_worker: add the row by which other processes find this one.
INSERT INTO perdure.workers (id, host, boot_id, pid_ns, pid, pid_start, "user", lease_ms, started_at)
VALUES (%(worker)s::text, %(host)s::text, %(boot_id)s::text, %(pid_ns)s::text, %(pid)s::bigint, %(pid_start)s::bigint,
        %(user)s::text, %(lease_ms)s::bigint, %(at)s::bigint)
ON CONFLICT (id) DO UPDATE SET beats = workers.beats + 1
RETURNING id;
