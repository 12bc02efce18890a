-- changed_tasks: what has changed since a moment, in that order; archived ones too.
SELECT
--> summary_columns
FROM perdure.tasks LEFT JOIN perdure.calls ON calls.task_uid = tasks.uid
WHERE tasks.namespace = %(namespace)s::text AND tasks.is_current AND (tasks.updated_at, tasks.uid) > (%(at)s::bigint, %(uid)s::text)
ORDER BY tasks.updated_at, tasks.uid LIMIT %(limit)s::bigint;
