-- tasks_of: the rows of these tasks.
SELECT
--> task_columns
FROM perdure.tasks WHERE uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json))) ORDER BY uid;
