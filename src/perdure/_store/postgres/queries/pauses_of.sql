-- pauses_of: read_pauses for several tasks; each row begins with the task's uid.
SELECT task_uid, path, reason, topic, question, asked_at, due_at, answer, answered_at, answered_by
FROM perdure.pauses WHERE task_uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json)))
ORDER BY task_uid, asked_at, path;
