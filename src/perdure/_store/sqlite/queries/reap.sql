-- reap: free the lease of a process that is dead, silent or stuck, if it is still the lease that was seen. A process
-- that was taken for silent keeps its lease if it has beaten since. The task's call keeps how often the task was lost
-- without progress, and when it may begin again.
UPDATE leases SET worker = NULL WHERE task_uid = :uid AND epoch = :seen_epoch AND worker = :seen_worker
  AND (:seen_beats IS NULL OR EXISTS (SELECT 1 FROM workers WHERE id = :seen_worker AND beats = :seen_beats))
RETURNING epoch;
UPDATE attempts SET ended_at = :at, ended = :ended WHERE task_uid = :uid AND ended_at IS NULL;
UPDATE calls SET losses = :losses, lost_position = :lost_position, not_before = :not_before WHERE task_uid = :uid;
UPDATE tasks SET version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid;
--> event
