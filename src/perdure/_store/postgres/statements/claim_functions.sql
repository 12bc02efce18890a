-- claim_functions: claim_free for many tasks at once. The rows come as one JSON document, payloads in base64. The rows
-- of tasks and leases are locked here, and rows locked by others are left out: it never waits, so it needs no order.
-- `|| ''` and ANY (ARRAY …) as in complete_functions.
WITH given AS MATERIALIZED (
  SELECT row.* FROM json_to_recordset(%(rows)s::json) AS row (
    uid text, seen_epoch bigint, worker text, host text, pid bigint, "user" text, at bigint, kind text, author text,
    body text, digest text)
),
workable AS MATERIALIZED (
  SELECT uid FROM perdure.tasks WHERE uid = ANY (ARRAY(SELECT uid FROM given)) AND status || '' = 'running'
  FOR NO KEY UPDATE SKIP LOCKED
),
free AS MATERIALIZED (
  SELECT task_uid FROM perdure.leases WHERE task_uid = ANY (ARRAY(SELECT uid FROM workable)) AND worker IS NULL
  FOR UPDATE SKIP LOCKED
),
taken AS (
  UPDATE perdure.leases SET epoch = leases.epoch + 1, worker = given.worker, taken_at = given.at
  FROM given
  WHERE task_uid = given.uid AND task_uid = ANY (ARRAY(SELECT task_uid FROM free)) AND leases.epoch = given.seen_epoch
  RETURNING task_uid AS uid
),
claims AS MATERIALIZED (
  SELECT given.* FROM given JOIN taken USING (uid)
),
ended AS (
  UPDATE perdure.attempts
  SET ended_at = ((SELECT jsonb_object_agg(uid, at) FROM claims) ->> task_uid)::bigint, ended = 'superseded'
  WHERE task_uid = ANY (ARRAY(SELECT uid FROM claims)) AND ended_at IS NULL
),
began AS (
  INSERT INTO perdure.attempts (task_uid, number, worker, host, pid, "user", agent, started_at)
  SELECT uid, seen_epoch + 1, worker, host, pid, "user", '', at FROM claims
),
changed AS (
  UPDATE perdure.tasks
  SET attempts = attempts + 1, started_at = COALESCE(started_at, claims.at), version = version + 1,
      updated_at = claims.at, event_count = event_count + 1,
      event_head = sha256(event_head || decode(claims.digest, 'base64'))
  FROM claims
  WHERE tasks.uid = claims.uid AND tasks.uid = ANY (ARRAY(SELECT uid FROM claims))
  RETURNING tasks.uid, event_count, event_head
),
told AS (
  INSERT INTO perdure.events (task_uid, number, at, kind, author, body, digest, hash)
  SELECT uid, event_count, at, kind, author, decode(body, 'base64'), decode(digest, 'base64'), event_head
  FROM claims JOIN changed USING (uid)
)
SELECT uid FROM taken;
