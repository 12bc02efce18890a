-- signals_of: read_signals for several tasks; each row begins with the task's uid.
SELECT task_uid, name, number, value, sent_at, sent_by, taken_by, once
FROM signals WHERE task_uid IN (SELECT value FROM json_each(:uids)) ORDER BY task_uid, sent_at, name, number;
