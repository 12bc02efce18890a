-- changed_tasks: what has changed since a moment, in that order; archived ones too.
SELECT
--> summary_columns
FROM tasks LEFT JOIN calls ON calls.task_uid = tasks.uid
WHERE tasks.namespace = :namespace AND tasks.is_current AND (tasks.updated_at, tasks.uid) > (:at, :uid)
ORDER BY tasks.updated_at, tasks.uid LIMIT :limit;
