-- get_history: every task that ever had this id, newest first.
SELECT
--> task_columns
FROM perdure.tasks WHERE namespace = %(namespace)s::text AND id = %(id)s::text ORDER BY uid DESC;
