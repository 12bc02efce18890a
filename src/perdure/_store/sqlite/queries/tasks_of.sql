-- tasks_of: the rows of these tasks.
SELECT
--> task_columns
FROM tasks WHERE uid IN (SELECT value FROM json_each(:uids)) ORDER BY uid;
