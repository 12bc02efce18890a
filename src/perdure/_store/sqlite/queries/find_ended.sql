-- find_ended: which of these ids belong to ended tasks.
SELECT id FROM tasks
WHERE namespace = :namespace AND id IN (SELECT value FROM json_each(:ids)) AND is_current
  AND status IN ('completed', 'failed', 'cancelled')
ORDER BY id;
