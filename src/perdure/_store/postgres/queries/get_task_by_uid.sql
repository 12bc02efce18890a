-- get_task_by_uid: a task by the name it never shares, current or history.
SELECT
--> task_columns
FROM perdure.tasks WHERE uid = %(uid)s::text;
