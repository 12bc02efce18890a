-- rebase: store the same checkpoint as a keyframe, so that its base can be deleted.
UPDATE perdure.checkpoints
SET base = NULL, stored = %(stored)s::bigint, chain_size = 0, chain_length = 0,
    chunks = %(chunks)s::bigint, frame = %(frame)s::bytea
WHERE task_uid = %(uid)s::text AND seq = %(target)s::bigint AND base IS NOT NULL
RETURNING seq;
