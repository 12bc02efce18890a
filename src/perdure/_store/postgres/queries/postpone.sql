-- postpone: let a task that has not begun begin later, with other arguments.
WITH changed AS (
  UPDATE perdure.tasks
  SET version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND is_current AND status IN ('pending', 'running')
    AND EXISTS (SELECT 1 FROM perdure.leases WHERE task_uid = %(uid)s::text AND epoch = 0)
    AND EXISTS (SELECT 1 FROM perdure.calls WHERE task_uid = %(uid)s::text)
  RETURNING uid, event_count, event_head, version
),
called AS (
  UPDATE perdure.calls SET arguments = %(arguments)s::bytea, not_before = %(not_before)s::bigint
  WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM changed)
),
--> event
SELECT version FROM changed;
