-- complete_functions: complete_function for many tasks at once, each behind its own fence. The rows come as one JSON
-- document, payloads in base64. The engine has locked tasks and leases already, in order. LATERAL and `|| ''` as in
-- append_entries; ANY (ARRAY …) makes the planner look rows up by their keys, whatever it believes of the tables.
-- Attempts are not joined with `ends`: the planner would sort the whole array again for each row.
WITH given AS MATERIALIZED (
  SELECT row.* FROM json_to_recordset(%(rows)s::json) AS row (
    uid text, epoch bigint, worker text, at bigint, kind text, author text, body text, digest text, result text)
  CROSS JOIN LATERAL (
    SELECT 1 FROM perdure.leases
    WHERE task_uid = row.uid AND epoch = row.epoch AND worker || '' = row.worker
    FOR SHARE
  ) AS fence
),
changed AS (
  UPDATE perdure.tasks
  SET status = 'completed', version = version + 1, updated_at = given.at, finished_at = given.at,
      pause_reason = NULL, pause = NULL, due_at = NULL, result = decode(given.result, 'base64'), error = NULL,
      event_count = event_count + 1, event_head = sha256(event_head || decode(given.digest, 'base64'))
  FROM given
  WHERE tasks.uid = given.uid AND tasks.uid = ANY (ARRAY(SELECT uid FROM given))
    AND is_current AND status || '' = 'running'
  RETURNING tasks.uid, event_count, event_head
),
ends AS MATERIALIZED (
  SELECT given.*, event_count, event_head FROM given JOIN changed USING (uid)
),
freed AS (
  UPDATE perdure.leases SET worker = NULL WHERE task_uid = ANY (ARRAY(SELECT uid FROM ends))
),
ended AS (
  UPDATE perdure.attempts
  SET ended_at = ((SELECT jsonb_object_agg(uid, at) FROM ends) ->> task_uid)::bigint, ended = 'completed'
  WHERE task_uid = ANY (ARRAY(SELECT uid FROM ends)) AND ended_at IS NULL
),
told AS (
  INSERT INTO perdure.events (task_uid, number, at, kind, author, body, digest, hash)
  SELECT uid, event_count, at, kind, author, decode(body, 'base64'), decode(digest, 'base64'), event_head FROM ends
)
SELECT uid FROM changed;
