-- get_call: which durable function a task carries out, and with what.
SELECT function, version, arguments, queue, priority, parent_uid, budget
FROM perdure.calls WHERE task_uid = %(uid)s::text;
