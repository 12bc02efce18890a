-- flag_attempt: add an event about the attempt under way. Of several workers that have seen the same version, one
-- succeeds.
--> fence
changed AS (
  UPDATE perdure.tasks
  SET version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND version = %(version)s::bigint AND EXISTS (SELECT 1 FROM fence)
  RETURNING uid, event_count, event_head, version
),
--> event
SELECT version FROM changed;
