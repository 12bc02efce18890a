-- read_holding: the tasks a process holds, the progress of each, and how often it was lost before.
SELECT tasks.uid, tasks.id, tasks.namespace, tasks.status, tasks.version, leases.epoch, tasks.line, tasks.seq,
       (SELECT COALESCE(max(position), 0) FROM perdure.journal
        WHERE journal.task_uid = tasks.uid AND journal.line = tasks.line),
       tasks.updated_at, calls.function, calls.losses, calls.lost_position, tasks.config
FROM perdure.leases
JOIN perdure.tasks ON tasks.uid = leases.task_uid
LEFT JOIN perdure.calls ON calls.task_uid = leases.task_uid
WHERE leases.worker = %(worker)s::text ORDER BY tasks.uid;
