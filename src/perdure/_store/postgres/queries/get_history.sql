-- get_history: every task that ever had this id, newest first.
SELECT
--> task_columns
FROM perdure.tasks WHERE namespace = %(namespace)s::text AND id = %(id)s::text AND is_current
UNION ALL
SELECT
--> task_columns
FROM perdure.tasks WHERE namespace = %(namespace)s::text AND id = %(id)s::text AND NOT is_current
ORDER BY uid DESC;
