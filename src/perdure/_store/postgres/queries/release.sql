-- release: give the lease back after the attempt has ended by itself; any process may claim it.
WITH freed AS (
  UPDATE perdure.leases SET worker = NULL
  WHERE task_uid = %(uid)s::text AND epoch = %(epoch)s::bigint AND worker || '' = %(worker)s::text
  RETURNING epoch
),
ended AS (
  UPDATE perdure.attempts SET ended_at = %(at)s::bigint, ended = %(ended)s::text
  WHERE task_uid = %(uid)s::text AND ended_at IS NULL AND EXISTS (SELECT 1 FROM freed)
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
