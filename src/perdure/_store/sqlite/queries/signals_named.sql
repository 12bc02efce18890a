-- signals_named: the signals with one name that were sent to these tasks, oldest first; each row begins with the task's
-- uid.
SELECT task_uid, value, sent_at, sent_by
FROM signals WHERE task_uid IN (SELECT value FROM json_each(:uids)) AND name = :name
ORDER BY task_uid, number;
