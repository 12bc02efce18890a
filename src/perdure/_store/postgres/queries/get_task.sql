-- get_task: the current task of an id.
SELECT
--> task_columns
FROM perdure.tasks WHERE namespace = %(namespace)s::text AND id = %(id)s::text AND is_current;
