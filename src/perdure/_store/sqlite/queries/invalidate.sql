-- invalidate: mark checkpoints that must not be resumed from. The newest one that is left becomes the state.
UPDATE tasks SET state_seq = :target, version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid AND version = :version
  AND EXISTS (SELECT 1 FROM checkpoints WHERE task_uid = :uid AND checkpoints.seq = :target)
RETURNING version;
UPDATE checkpoints SET valid = 0 WHERE task_uid = :uid AND seq IN (SELECT value FROM json_each(:seqs));
--> event
