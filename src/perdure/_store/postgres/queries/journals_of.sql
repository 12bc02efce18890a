-- journals_of: the journals of these tasks in order, each on its task's present line.
SELECT task_uid, position, entry
FROM perdure.tasks JOIN perdure.journal ON task_uid = uid AND journal.line = tasks.line
WHERE uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json))) ORDER BY task_uid, position LIMIT %(limit)s::bigint;
