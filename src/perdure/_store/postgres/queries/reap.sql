-- reap: free the lease of a process that is dead, silent or stuck, if it is still the lease that was seen. A process
-- that was taken for silent keeps its lease if it has beaten since. The task's call keeps how often the task was lost
-- without progress, and when it may begin again.
WITH freed AS (
  UPDATE perdure.leases SET worker = NULL
  WHERE task_uid = %(uid)s::text AND epoch = %(seen_epoch)s::bigint AND worker || '' = %(seen_worker)s::text
    AND (%(seen_beats)s::bigint IS NULL OR EXISTS (
      SELECT 1 FROM perdure.workers WHERE id = %(seen_worker)s::text AND beats = %(seen_beats)s::bigint
    ))
  RETURNING epoch
),
ended AS (
  UPDATE perdure.attempts SET ended_at = %(at)s::bigint, ended = %(ended)s::text
  WHERE task_uid = %(uid)s::text AND ended_at IS NULL AND EXISTS (SELECT 1 FROM freed)
),
counted AS (
  UPDATE perdure.calls
  SET losses = %(losses)s::bigint, lost_position = %(lost_position)s::bigint, not_before = %(not_before)s::bigint
  WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM freed)
),
changed AS (
  UPDATE perdure.tasks
  SET version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND EXISTS (SELECT 1 FROM freed)
  RETURNING uid, event_count, event_head
),
--> event
SELECT epoch FROM freed;
