-- find_live: which of these tasks have not ended.
SELECT uid FROM perdure.tasks
WHERE uid IN (SELECT json_array_elements_text(%(uids)s::json)) AND status IN ('pending', 'running', 'paused')
ORDER BY uid;
