-- remind_pause: the same as rearm_pause, with an event that says a question is still open.
WITH reminded AS (
  UPDATE perdure.pauses SET due_at = %(due_at)s::bigint
  WHERE task_uid = %(uid)s::text AND path = %(path)s::text AND answer IS NULL
    AND due_at IS NOT DISTINCT FROM %(seen_due_at)s::bigint
  RETURNING path
),
changed AS (
  UPDATE perdure.tasks
  SET version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  FROM reminded WHERE uid = %(uid)s::text
  RETURNING uid, event_count, event_head
),
--> event
SELECT path FROM reminded;
