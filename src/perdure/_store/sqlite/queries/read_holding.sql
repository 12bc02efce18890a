-- read_holding: the tasks a process holds, the progress of each, and how often it was lost before.
SELECT tasks.uid, tasks.id, tasks.namespace, tasks.status, tasks.version, leases.epoch, tasks.line, tasks.seq,
       (SELECT COALESCE(max(position), 0) FROM journal WHERE journal.task_uid = tasks.uid AND journal.line = tasks.line),
       tasks.updated_at, calls.function, calls.losses, calls.lost_position, tasks.config
FROM leases JOIN tasks ON tasks.uid = leases.task_uid LEFT JOIN calls ON calls.task_uid = leases.task_uid
WHERE leases.worker = :worker ORDER BY tasks.uid;
