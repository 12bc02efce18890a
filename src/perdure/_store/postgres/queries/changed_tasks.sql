-- changed_tasks: tasks that have changed since a moment, including archived tasks but not hidden ones. It reads status
-- by status, as the index is ordered, and returns the first `limit` of each; the caller merges them.
SELECT
--> summary_columns
FROM (
  SELECT live.uid
  FROM (VALUES ('pending'), ('running'), ('paused'), ('completed'), ('failed'), ('cancelled')) AS every (status)
  CROSS JOIN LATERAL (
    SELECT uid FROM perdure.tasks
    WHERE namespace = %(namespace)s::text AND is_current AND archived_at IS NULL AND status = every.status AND hidden = 0
      AND (updated_at, uid) > (%(at)s::bigint, %(uid)s::text) ORDER BY updated_at, uid LIMIT %(limit)s::bigint) AS live
  UNION ALL
  SELECT archived.uid FROM (VALUES ('completed'), ('failed'), ('cancelled')) AS every (status)
  CROSS JOIN LATERAL (
    SELECT uid FROM perdure.tasks
    WHERE namespace = %(namespace)s::text AND is_current AND archived_at IS NOT NULL AND status = every.status AND hidden = 0
      AND (updated_at, uid) > (%(at)s::bigint, %(uid)s::text) ORDER BY updated_at, uid LIMIT %(limit)s::bigint) AS archived
) AS changed
JOIN perdure.tasks ON tasks.uid = changed.uid LEFT JOIN perdure.calls ON calls.task_uid = tasks.uid;
