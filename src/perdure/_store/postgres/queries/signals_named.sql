-- signals_named: the signals of one name to these tasks, each behind its uid, the oldest first.
SELECT task_uid, value, sent_at, sent_by
FROM perdure.signals WHERE task_uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json))) AND name = %(name)s::text
ORDER BY task_uid, number;
