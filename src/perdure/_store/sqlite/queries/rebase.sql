-- rebase: the same checkpoint as a keyframe, so that what it was a delta of may go.
UPDATE checkpoints SET base = NULL, stored = :stored, chain_size = 0, chain_length = 0,
                       chunks = :chunks, frame = :frame
WHERE task_uid = :uid AND seq = :target AND base IS NOT NULL
RETURNING seq;
