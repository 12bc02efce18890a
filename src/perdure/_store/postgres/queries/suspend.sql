-- suspend: pause the task until its open questions are answered; its attempt has been unwound. If one was answered
-- meanwhile, nothing changes and the caller continues with the answer.
--> fence
changed AS (
  UPDATE perdure.tasks
  SET status = 'paused', version = version + 1, updated_at = %(at)s::bigint,
      pause_reason = %(pause_reason)s::text, pause = %(pause)s::bytea, due_at = %(due_at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND status = 'running' AND EXISTS (SELECT 1 FROM fence)
    AND NOT EXISTS (SELECT 1 FROM perdure.pauses
                    WHERE task_uid = %(uid)s::text AND answer IS NOT NULL
                      AND path IN (SELECT jsonb_array_elements_text(%(paths)s::jsonb)))
  RETURNING uid, version, event_count, event_head
),
freed AS (
  UPDATE perdure.leases SET worker = NULL WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM changed)
),
ended AS (
  UPDATE perdure.attempts SET ended_at = %(at)s::bigint, ended = 'paused'
  WHERE task_uid = %(uid)s::text AND ended_at IS NULL AND EXISTS (SELECT 1 FROM changed)
),
--> event
SELECT version FROM changed;
