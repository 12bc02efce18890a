-- get_task_by_uid: a task by its uid, which is never reused; current or history.
SELECT
--> task_columns
FROM tasks WHERE uid = :uid;
