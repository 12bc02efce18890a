-- checkpoint: add a snapshot, which becomes the state; only while the lease is ours.
-- A delta names the checkpoint it was made from; if the state has moved since, nothing is written.
--> fence
changed AS (
  UPDATE perdure.tasks
  SET seq = seq + 1, state_seq = seq + 1, version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND status IN ('running', 'paused') AND state_seq = %(parent)s::bigint
    AND EXISTS (SELECT 1 FROM fence)
  RETURNING uid, seq, line, version, status, event_count, event_head
),
--> checkpoint
--> event
SELECT seq, version, status FROM changed;
