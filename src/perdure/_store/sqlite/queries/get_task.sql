-- get_task: the current task of an id.
SELECT
--> task_columns
FROM tasks WHERE namespace = :namespace AND id = :id AND is_current;
