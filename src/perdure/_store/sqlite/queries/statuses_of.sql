-- statuses_of: the statuses of the tasks with these ids.
SELECT id, status FROM tasks
WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids)) AND is_current ORDER BY id;
