-- next_start: when the first of the tasks that are to begin later may begin.
SELECT min(calls.not_before)
FROM perdure.tasks JOIN perdure.calls ON calls.task_uid = tasks.uid
WHERE tasks.namespace = %(namespace)s::text AND tasks.status IN ('pending', 'running') AND tasks.is_current
  AND tasks.archived_at IS NULL AND calls.not_before > %(now)s::bigint;
