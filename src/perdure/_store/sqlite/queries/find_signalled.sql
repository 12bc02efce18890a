-- find_signalled: which of these tasks were sent a signal of this name.
SELECT DISTINCT task_uid FROM signals
WHERE name = :signal AND task_uid IN (SELECT value FROM json_each(:uids)) ORDER BY task_uid;
