-- open_pauses_of: the unanswered questions of these tasks; each row begins with the task's uid.
SELECT task_uid, path, reason, topic, question, asked_at, due_at
FROM pauses WHERE task_uid IN (SELECT value FROM json_each(:uids)) AND answer IS NULL
ORDER BY task_uid, asked_at, path;
