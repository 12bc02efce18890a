-- signals_of: read_signals for several tasks; each row begins with the task's uid.
SELECT task_uid, name, number, value, sent_at, sent_by, taken_by, once
FROM perdure.signals WHERE task_uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json)))
ORDER BY task_uid, sent_at, name, number;
