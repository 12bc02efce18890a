-- find_live: which of these tasks have not ended.
SELECT uid FROM tasks
WHERE uid IN (SELECT value FROM json_each(:uids)) AND status IN ('pending', 'running', 'paused') ORDER BY uid;
