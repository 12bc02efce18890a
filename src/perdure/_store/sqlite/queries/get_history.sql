-- get_history: every task that ever had this id, newest first.
SELECT
--> task_columns
FROM tasks WHERE namespace = :namespace AND id = :id ORDER BY uid DESC;
