-- complete_function: record the end of a durable function, while the lease is still ours.
--> fence
changed AS (
  UPDATE perdure.tasks
  SET status = 'completed', version = version + 1, updated_at = %(at)s::bigint, finished_at = %(at)s::bigint,
      pause_reason = NULL, pause = NULL, due_at = NULL, result = %(result)s::bytea, error = NULL,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND is_current AND status = 'running' AND EXISTS (SELECT 1 FROM fence)
  RETURNING uid, event_count, event_head
),
freed AS (
  UPDATE perdure.leases SET worker = NULL WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM changed)
),
ended AS (
  UPDATE perdure.attempts SET ended_at = %(at)s::bigint, ended = 'completed'
  WHERE task_uid = %(uid)s::text AND ended_at IS NULL AND EXISTS (SELECT 1 FROM changed)
),
--> event
SELECT uid FROM changed;
