-- claim_free: take the free lease of a running task, as a worker does for many tasks at once. The epoch that was seen
-- is the condition: if another process has had the lease since then, nothing is written. A row that another transaction
-- has locked is left out: a worker takes another task rather than wait.
WITH workable AS MATERIALIZED (
  SELECT 1 FROM perdure.tasks WHERE uid = %(uid)s::text AND status || '' = 'running' FOR NO KEY UPDATE SKIP LOCKED
),
free AS MATERIALIZED (
  SELECT task_uid FROM perdure.leases
  WHERE task_uid = %(uid)s::text AND epoch = %(seen_epoch)s::bigint AND worker IS NULL AND EXISTS (SELECT 1 FROM workable)
  FOR UPDATE SKIP LOCKED
),
taken AS (
  UPDATE perdure.leases SET epoch = epoch + 1, worker = %(worker)s::text, taken_at = %(at)s::bigint
  WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM free)
  RETURNING task_uid AS uid, epoch
),
ended AS (
  UPDATE perdure.attempts SET ended_at = %(at)s::bigint, ended = 'superseded'
  WHERE task_uid = %(uid)s::text AND ended_at IS NULL AND EXISTS (SELECT 1 FROM taken)
),
began AS (
  INSERT INTO perdure.attempts (task_uid, number, worker, host, pid, "user", agent, started_at)
  SELECT uid, epoch, %(worker)s::text, %(host)s::text, %(pid)s::bigint, %(user)s::text, '', %(at)s::bigint FROM taken
),
changed AS (
  UPDATE perdure.tasks
  SET attempts = attempts + 1, started_at = COALESCE(started_at, %(at)s::bigint),
      version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND EXISTS (SELECT 1 FROM taken)
  RETURNING uid, event_count, event_head
),
--> event
SELECT uid FROM taken;
