-- signals_named: the signals with one name that were sent to these tasks, oldest first; each row begins with the task's
-- uid.
SELECT task_uid, value, sent_at, sent_by
FROM perdure.signals WHERE task_uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json))) AND name = %(name)s::text
ORDER BY task_uid, number;
