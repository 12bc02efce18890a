-- signals_named: the signals of one name to these tasks, each behind its uid, the oldest first.
SELECT task_uid, value, sent_at, sent_by
FROM signals WHERE task_uid IN (SELECT value FROM json_each(:uids)) AND name = :name
ORDER BY task_uid, number;
