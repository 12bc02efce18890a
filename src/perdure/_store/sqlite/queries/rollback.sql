-- rollback: make an earlier checkpoint the state again, optionally patched, and begin a new line there. Checkpoints
-- that did not lead to it stay readable, marked as superseded; those that did lose that mark if an earlier rollback had
-- set it. If a checkpoint on the way was pruned, the one before it is used. The epoch rises, so that an attempt still
-- working from the later state can no longer write. Without `after` the status stays as it is. A durable function's new
-- line begins with `entries`, as for fork_function; questions of the old line are removed, as in begin_line. They were
-- chosen from the old line up to `seen`. If the line has grown since, nothing is written, so that an effect begun
-- meanwhile is not forgotten.
UPDATE tasks SET seq = seq + :adds, state_seq = CASE WHEN :adds THEN seq + 1 ELSE :target END, line = line + 1,
                 status = COALESCE(:after, status), version = version + 1, updated_at = :at,
                 finished_at = CASE WHEN :after IS NULL THEN finished_at END,
                 archived_at = CASE WHEN :after IS NULL THEN archived_at END,
                 pause_reason = CASE WHEN :after IS NULL THEN pause_reason END,
                 pause = CASE WHEN :after IS NULL THEN pause END,
                 due_at = CASE WHEN :after IS NULL THEN due_at END,
                 error = CASE WHEN :after IS NULL THEN error END,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid AND is_current AND version = :version AND instr(:befores, status)
  AND EXISTS (SELECT 1 FROM checkpoints WHERE task_uid = :uid AND checkpoints.seq = :target)
  AND NOT EXISTS (SELECT 1 FROM journal WHERE task_uid = :uid AND journal.line = tasks.line AND position > :seen)
RETURNING seq, version;
WITH RECURSIVE lineage (seq) AS (
  SELECT :target
  UNION
  SELECT (SELECT max(before.seq) FROM checkpoints AS before
          WHERE before.task_uid = :uid AND before.seq <= made.parent)
  FROM lineage JOIN checkpoints AS made ON made.task_uid = :uid AND made.seq = lineage.seq
)
UPDATE checkpoints SET superseded = seq NOT IN (SELECT seq FROM lineage WHERE seq IS NOT NULL)
WHERE task_uid = :uid AND superseded <> (seq NOT IN (SELECT seq FROM lineage WHERE seq IS NOT NULL));
--> checkpoint
--> entries
--> left_line
UPDATE leases SET epoch = epoch + 1, worker = NULL WHERE task_uid = :uid;
UPDATE attempts SET ended_at = :at, ended = 'rolled back' WHERE task_uid = :uid AND ended_at IS NULL;
--> event
