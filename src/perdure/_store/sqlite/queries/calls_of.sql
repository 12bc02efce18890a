-- calls_of: get_call for several tasks; each row begins with the task's uid.
SELECT calls.task_uid, function, version, arguments, queue, priority, parent_uid, budget, key, not_before, deadline_at,
       losses, COALESCE(journal_ends.line, 0), COALESCE(journal_ends.position, 0)
FROM calls LEFT JOIN journal_ends ON journal_ends.task_uid = calls.task_uid
WHERE calls.task_uid IN (SELECT value FROM json_each(:uids)) ORDER BY calls.task_uid;
