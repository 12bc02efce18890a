-- archive: hide a finished task from lists, or show it again.
WITH changed AS (
  UPDATE perdure.tasks
  SET archived_at = %(archived_at)s::bigint, version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND status IN ('completed', 'failed', 'cancelled')
  RETURNING uid, version, event_count, event_head
),
--> event
SELECT version FROM changed;
