-- get_history: every task that ever had this id, newest first.
SELECT
--> task_columns
FROM tasks WHERE namespace = :namespace AND id = :id AND is_current
UNION ALL
SELECT
--> task_columns
FROM tasks WHERE namespace = :namespace AND id = :id AND NOT is_current
ORDER BY uid DESC;
