-- summaries_of: these tasks of a namespace as a list shows them, newest first.
SELECT
--> summary_columns
FROM perdure.tasks LEFT JOIN perdure.calls ON calls.task_uid = tasks.uid
WHERE tasks.uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json))) AND tasks.namespace = %(namespace)s::text
ORDER BY tasks.uid DESC;
