-- invalidate: mark checkpoints that must not be resumed from. The newest one that is left becomes the state.
WITH changed AS (
  UPDATE perdure.tasks
  SET state_seq = %(target)s::bigint, version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND version = %(version)s::bigint
    AND EXISTS (SELECT 1 FROM perdure.checkpoints
                WHERE task_uid = %(uid)s::text AND checkpoints.seq = %(target)s::bigint)
  RETURNING uid, version, event_count, event_head
),
set_aside AS (
  UPDATE perdure.checkpoints SET valid = false
  WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM changed)
    AND seq IN (SELECT value::bigint FROM jsonb_array_elements_text(%(seqs)s::jsonb) AS listed (value))
),
--> event
SELECT version FROM changed;
