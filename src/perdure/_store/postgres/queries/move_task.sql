-- move_task: change the status, optionally with a checkpoint, in one write. `befores` lists the statuses the move is
-- lawful from. `epoch` is given for moves of the holder only; `parent` when the move was computed from a state;
-- `version` when the caller requires one.
--> fence
changed AS (
  UPDATE perdure.tasks
  SET status = %(after)s::text, version = version + 1, updated_at = %(at)s::bigint,
      finished_at = %(finished_at)s::bigint, seq = seq + %(adds)s::bigint,
      state_seq = CASE WHEN %(adds)s::bigint <> 0 THEN seq + 1 ELSE state_seq END,
      archived_at = CASE WHEN %(after)s::text = 'running' THEN NULL ELSE archived_at END,
      pause_reason = %(pause_reason)s::text, pause = %(pause)s::bytea, due_at = %(due_at)s::bigint,
      result = %(result)s::bytea, error = %(error)s::bytea,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND is_current AND status = ANY (string_to_array(%(befores)s::text, ','))
    AND (%(parent)s::bigint IS NULL OR state_seq = %(parent)s::bigint)
    AND (%(version)s::bigint IS NULL OR version = %(version)s::bigint)
    AND (%(epoch)s::bigint IS NULL OR EXISTS (SELECT 1 FROM fence))
  RETURNING uid, seq, line, version, event_count, event_head
),
--> checkpoint
freed AS (
  UPDATE perdure.leases SET worker = NULL
  WHERE task_uid = %(uid)s::text AND %(ends)s::int <> 0 AND EXISTS (SELECT 1 FROM changed)
),
ended AS (
  UPDATE perdure.attempts SET ended_at = %(at)s::bigint, ended = %(ended)s::text
  WHERE task_uid = %(uid)s::text AND ended_at IS NULL AND %(ends)s::int <> 0 AND EXISTS (SELECT 1 FROM changed)
),
--> event
SELECT seq, version FROM changed;
