-- count_tasks: count the tasks of a namespace by status and by pause reason, without hidden ones. One index has all
-- that is needed.
SELECT status, NULL, count(*) FROM perdure.tasks
WHERE namespace = %(namespace)s::text AND is_current AND archived_at IS NULL AND hidden = 0 AND status <> 'paused'
GROUP BY status
UNION ALL
SELECT 'paused', pause_reason, count(*) FROM perdure.tasks
WHERE namespace = %(namespace)s::text AND is_current AND archived_at IS NULL AND hidden = 0 AND status = 'paused'
GROUP BY pause_reason;
