-- read_checkpoint_heads: some of a task's checkpoints, oldest first, without their bytes.
SELECT seq, line, parent, at, label, cause, depth, author, size, stored, valid, superseded, pinned
FROM checkpoints WHERE task_uid = :uid AND seq > :after ORDER BY seq LIMIT :limit;
