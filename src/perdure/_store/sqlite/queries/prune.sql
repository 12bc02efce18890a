-- prune: delete this checkpoint, unless it is the state, is pinned, or is the base of another one.
DELETE FROM checkpoints
WHERE task_uid = :uid AND seq = :target AND NOT pinned
  AND seq <> (SELECT state_seq FROM tasks WHERE uid = :uid)
  AND NOT EXISTS (SELECT 1 FROM checkpoints AS later WHERE later.task_uid = :uid AND later.base = :target)
RETURNING seq;
DELETE FROM chunks WHERE task_uid = :uid AND owner = :owner;
