-- read_signals: the signals that were sent to a task, taken or not.
SELECT name, number, value, sent_at, sent_by, taken_by, once
FROM signals WHERE task_uid = :uid ORDER BY sent_at, name, number;
