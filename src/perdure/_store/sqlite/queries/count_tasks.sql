-- count_tasks: how many tasks of a namespace that are not hidden have each status, and are paused for each reason; from one index alone.
SELECT status, NULL, count(*) FROM tasks
WHERE namespace = :namespace AND is_current AND archived_at IS NULL AND hidden = 0 AND status <> 'paused'
GROUP BY status
UNION ALL
SELECT 'paused', pause_reason, count(*) FROM tasks
WHERE namespace = :namespace AND is_current AND archived_at IS NULL AND hidden = 0 AND status = 'paused'
GROUP BY pause_reason;
