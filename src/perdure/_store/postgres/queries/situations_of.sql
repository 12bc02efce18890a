-- situations_of: these tasks, each with its call, its lease and its last attempt. Long results are left out.
SELECT
       tasks.uid, tasks.id, tasks.status, tasks.line, tasks.pause_reason, tasks.pause, tasks.due_at, tasks.progress,
       CASE WHEN length(tasks.result) <= 4096 THEN tasks.result END AS result,
       CASE WHEN length(tasks.error) <= 65536 THEN tasks.error END AS error,
       tasks.config, tasks.depends_on, tasks.attempts, tasks.event_count, tasks.created_at, tasks.started_at,
       tasks.updated_at, tasks.finished_at, calls.function, calls.version, calls.queue, calls.not_before,
       leases.epoch, leases.worker, leases.taken_at,
       attempts.number AS attempt, attempts.host, attempts.pid, attempts."user" AS attempt_user, attempts.ended
FROM perdure.tasks LEFT JOIN perdure.calls ON calls.task_uid = tasks.uid LEFT JOIN perdure.leases ON leases.task_uid = tasks.uid
LEFT JOIN perdure.attempts ON attempts.task_uid = tasks.uid
  AND attempts.number = (SELECT max(number) FROM perdure.attempts AS others WHERE others.task_uid = tasks.uid)
WHERE tasks.uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json))) ORDER BY tasks.uid;
