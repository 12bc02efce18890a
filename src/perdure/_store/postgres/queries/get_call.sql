-- get_call: which durable function a task carries out, with what, and how it waits its turn.
SELECT function, version, arguments, queue, priority, parent_uid, budget, key, not_before, deadline_at, losses
FROM perdure.calls WHERE task_uid = %(uid)s::text;
