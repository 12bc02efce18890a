-- open_pauses_of: the unanswered questions of these tasks; each row begins with the task's uid.
SELECT task_uid, path, reason, topic, question, asked_at, due_at
FROM perdure.pauses WHERE task_uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json))) AND answer IS NULL
ORDER BY task_uid, asked_at, path;
