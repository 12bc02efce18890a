-- rollback: make an earlier checkpoint the state again, optionally patched, and begin a new line there. Checkpoints
-- that did not lead to it stay readable, marked as superseded; those that did lose that mark if an earlier rollback had
-- set it. If a checkpoint on the way was pruned, the one before it is used. The epoch rises, so that an attempt still
-- working from the later state can no longer write. Without `after` the status stays as it is. A durable function's new
-- line begins with `entries`, as for fork_function; questions of the old line are removed, as in begin_line. They were
-- chosen from the old line up to `seen`. If the line has grown since, nothing is written, so that an effect begun
-- meanwhile is not forgotten. Its lease is locked before this statement, so no entry is being committed meanwhile.
WITH RECURSIVE lineage (seq) AS (
  SELECT %(target)s::bigint
  UNION
  SELECT (SELECT max(before.seq) FROM perdure.checkpoints AS before
          WHERE before.task_uid = %(uid)s::text AND before.seq <= made.parent)
  FROM lineage CROSS JOIN LATERAL (  -- OFFSET 0: looked up by its key, one by one
    SELECT parent FROM perdure.checkpoints WHERE task_uid = %(uid)s::text AND checkpoints.seq = lineage.seq OFFSET 0
  ) AS made
),
changed AS (
  UPDATE perdure.tasks
  SET seq = seq + %(adds)s::bigint,
      state_seq = CASE WHEN %(adds)s::bigint <> 0 THEN seq + 1 ELSE %(target)s::bigint END,
      line = line + 1, status = COALESCE(%(after)s::text, status), version = version + 1,
      updated_at = %(at)s::bigint,
      finished_at = CASE WHEN %(after)s::text IS NULL THEN finished_at END,
      archived_at = CASE WHEN %(after)s::text IS NULL THEN archived_at END,
      pause_reason = CASE WHEN %(after)s::text IS NULL THEN pause_reason END,
      pause = CASE WHEN %(after)s::text IS NULL THEN pause END,
      due_at = CASE WHEN %(after)s::text IS NULL THEN due_at END,
      error = CASE WHEN %(after)s::text IS NULL THEN error END,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND is_current AND version = %(version)s::bigint
    AND EXISTS (SELECT 1 FROM perdure.checkpoints
                WHERE task_uid = %(uid)s::text AND checkpoints.seq = %(target)s::bigint)
    AND status = ANY (string_to_array(%(befores)s::text, ','))
    AND NOT EXISTS (SELECT 1 FROM perdure.journal WHERE task_uid = %(uid)s::text AND journal.line = tasks.line
                    AND position > %(seen)s::bigint)
  RETURNING uid, seq, line, version, event_count, event_head
),
superseded AS (
  UPDATE perdure.checkpoints SET superseded = NOT superseded
  WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM changed)
    AND superseded = (seq IN (SELECT seq FROM lineage WHERE seq IS NOT NULL))
),
--> checkpoint
--> entries
--> left_line
freed AS (
  UPDATE perdure.leases SET epoch = epoch + 1, worker = NULL
  WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM changed)
),
ended AS (
  UPDATE perdure.attempts SET ended_at = %(at)s::bigint, ended = 'rolled back'
  WHERE task_uid = %(uid)s::text AND ended_at IS NULL AND EXISTS (SELECT 1 FROM changed)
),
--> event
SELECT seq, version FROM changed;
