-- claim: take a lease that was seen free, ours, or lost by its holder. The epoch that was seen is the condition: if
-- another process changed the lease since then, that process wins. An entry being appended under the old epoch holds
-- the lease row; this waits for it, then looks at the row again.
WITH workable AS MATERIALIZED (
  SELECT 1 FROM perdure.tasks WHERE uid = %(uid)s::text AND status = %(before)s::text FOR NO KEY UPDATE
),
taken AS (
  UPDATE perdure.leases SET epoch = epoch + 1, worker = %(worker)s::text, taken_at = %(at)s::bigint
  WHERE task_uid = %(uid)s::text AND epoch = %(seen_epoch)s::bigint
    AND worker IS NOT DISTINCT FROM %(seen_worker)s::text
    AND EXISTS (SELECT 1 FROM workable)
  RETURNING task_uid, epoch
),
ended AS (
  UPDATE perdure.attempts SET ended_at = %(at)s::bigint, ended = %(former)s::text
  WHERE task_uid = %(uid)s::text AND ended_at IS NULL AND EXISTS (SELECT 1 FROM taken)
),
began AS (
  INSERT INTO perdure.attempts (task_uid, number, worker, host, pid, "user", agent, started_at)
  SELECT task_uid, epoch, %(worker)s::text, %(host)s::text, %(pid)s::bigint, %(user)s::text, %(agent)s::text,
         %(at)s::bigint
  FROM taken
),
changed AS (
  UPDATE perdure.tasks
  SET status = 'running', attempts = attempts + 1, started_at = COALESCE(started_at, %(at)s::bigint),
      version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND EXISTS (SELECT 1 FROM taken)
  RETURNING uid, event_count, event_head
),
--> event
SELECT epoch FROM taken;
