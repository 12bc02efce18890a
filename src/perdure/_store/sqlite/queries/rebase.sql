-- rebase: store the same checkpoint as a keyframe, so that its base can be deleted.
UPDATE checkpoints SET base = NULL, stored = :stored, chain_size = 0, chain_length = 0,
                       chunks = :chunks, frame = :frame
WHERE task_uid = :uid AND seq = :target AND base IS NOT NULL
RETURNING seq;
