-- rebase: the same checkpoint as a keyframe, so that what it was a delta of may go.
UPDATE perdure.checkpoints
SET base = NULL, stored = %(stored)s::bigint, chain_size = 0, chain_length = 0,
    chunks = %(chunks)s::bigint, frame = %(frame)s::bytea
WHERE task_uid = %(uid)s::text AND seq = %(target)s::bigint AND base IS NOT NULL
RETURNING seq;
