-- changed_tasks: tasks that have changed since a moment, including archived tasks but not hidden ones. It reads status
-- by status, as the index is ordered, and returns the first `limit` of each; the caller merges them.
SELECT
--> summary_columns
FROM (
  SELECT * FROM (SELECT uid, updated_at FROM tasks
    WHERE namespace = :namespace AND is_current AND archived_at IS NULL AND status = 'pending' AND hidden = 0
      AND (updated_at, uid) > (:at, :uid) ORDER BY updated_at, uid LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT uid, updated_at FROM tasks
    WHERE namespace = :namespace AND is_current AND archived_at IS NULL AND status = 'running' AND hidden = 0
      AND (updated_at, uid) > (:at, :uid) ORDER BY updated_at, uid LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT uid, updated_at FROM tasks
    WHERE namespace = :namespace AND is_current AND archived_at IS NULL AND status = 'paused' AND hidden = 0
      AND (updated_at, uid) > (:at, :uid) ORDER BY updated_at, uid LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT uid, updated_at FROM tasks
    WHERE namespace = :namespace AND is_current AND archived_at IS NULL AND status = 'completed' AND hidden = 0
      AND (updated_at, uid) > (:at, :uid) ORDER BY updated_at, uid LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT uid, updated_at FROM tasks
    WHERE namespace = :namespace AND is_current AND archived_at IS NULL AND status = 'failed' AND hidden = 0
      AND (updated_at, uid) > (:at, :uid) ORDER BY updated_at, uid LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT uid, updated_at FROM tasks
    WHERE namespace = :namespace AND is_current AND archived_at IS NULL AND status = 'cancelled' AND hidden = 0
      AND (updated_at, uid) > (:at, :uid) ORDER BY updated_at, uid LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT uid, updated_at FROM tasks
    WHERE namespace = :namespace AND is_current AND archived_at IS NOT NULL AND status = 'completed' AND hidden = 0
      AND (updated_at, uid) > (:at, :uid) ORDER BY updated_at, uid LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT uid, updated_at FROM tasks
    WHERE namespace = :namespace AND is_current AND archived_at IS NOT NULL AND status = 'failed' AND hidden = 0
      AND (updated_at, uid) > (:at, :uid) ORDER BY updated_at, uid LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT uid, updated_at FROM tasks
    WHERE namespace = :namespace AND is_current AND archived_at IS NOT NULL AND status = 'cancelled' AND hidden = 0
      AND (updated_at, uid) > (:at, :uid) ORDER BY updated_at, uid LIMIT :limit)
) AS changed
CROSS JOIN tasks ON tasks.uid = changed.uid LEFT JOIN calls ON calls.task_uid = tasks.uid;
