-- calls_of: get_call for several tasks; each row begins with the task's uid.
SELECT calls.task_uid, function, version, arguments, queue, priority, parent_uid, budget, key, not_before, deadline_at,
       losses, COALESCE(journal_ends.line, 0), COALESCE(journal_ends.position, 0)
FROM perdure.calls LEFT JOIN perdure.journal_ends ON journal_ends.task_uid = calls.task_uid
WHERE calls.task_uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json))) ORDER BY calls.task_uid;
