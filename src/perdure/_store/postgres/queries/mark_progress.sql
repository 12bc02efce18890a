-- mark_progress: record the attempt's progress, only while the lease is ours.
--> fence
changed AS (
  UPDATE perdure.tasks SET progress = %(progress)s::bytea, updated_at = %(at)s::bigint
  WHERE uid = %(uid)s::text AND status IN ('running', 'paused') AND EXISTS (SELECT 1 FROM fence)
  RETURNING version
)
SELECT version FROM changed;
