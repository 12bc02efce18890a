-- summaries_of: these tasks of a namespace as a list shows them, newest first.
SELECT
--> summary_columns
FROM tasks LEFT JOIN calls ON calls.task_uid = tasks.uid
WHERE tasks.uid IN (SELECT value FROM json_each(:uids)) AND tasks.namespace = :namespace ORDER BY tasks.uid DESC;
