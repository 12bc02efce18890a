-- mark_progress: record the attempt's progress, only while the lease is ours.
UPDATE tasks SET progress = :progress, updated_at = :at
WHERE uid = :uid AND status IN ('running', 'paused')
  AND EXISTS (SELECT 1 FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker)
RETURNING version;
