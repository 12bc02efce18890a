-- read_signals: the signals that were sent to a task, taken or not.
SELECT name, number, value, sent_at, sent_by, taken_by, once
FROM perdure.signals WHERE task_uid = %(uid)s::text ORDER BY sent_at, name, number;
