-- move_task: change the status, optionally with a checkpoint, in one write. `befores` lists the statuses the move is
-- lawful from. `epoch` is given for moves of the holder only; `parent` when the move was computed from a state;
-- `version` when the caller requires one.
UPDATE tasks SET status = :after, version = version + 1, updated_at = :at, finished_at = :finished_at,
                 seq = seq + :adds, state_seq = CASE WHEN :adds THEN seq + 1 ELSE state_seq END,
                 archived_at = CASE WHEN :after = 'running' THEN NULL ELSE archived_at END,
                 pause_reason = :pause_reason, pause = :pause, due_at = :due_at, result = :result, error = :error,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid AND is_current AND instr(:befores, status)
  AND (:parent IS NULL OR state_seq = :parent)
  AND (:version IS NULL OR version = :version)
  AND (:epoch IS NULL
       OR EXISTS (SELECT 1 FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker))
RETURNING seq, version;
--? frame
--> checkpoint
UPDATE leases SET worker = NULL WHERE task_uid = :uid AND :ends;
UPDATE attempts SET ended_at = :at, ended = :ended WHERE task_uid = :uid AND ended_at IS NULL AND :ends;
--> event
