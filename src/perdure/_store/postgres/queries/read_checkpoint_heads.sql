-- read_checkpoint_heads: some of a task's checkpoints, oldest first, without their bytes.
SELECT seq, line, parent, at, label, cause, depth, author, size, stored, valid, superseded, pinned
FROM perdure.checkpoints WHERE task_uid = %(uid)s::text AND seq > %(after)s::bigint
ORDER BY seq LIMIT %(limit)s::bigint;
