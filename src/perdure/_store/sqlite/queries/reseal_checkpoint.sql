-- reseal_checkpoint: the same frame under another key, unless it became a keyframe or went meanwhile.
-- A large frame has new chunks under a new owner; the old ones go with the row that named them.
UPDATE checkpoints SET frame = :frame, stored = :stored, chunks = :chunks
WHERE task_uid = :uid AND seq = :target AND frame = :old_frame
RETURNING seq;
DELETE FROM chunks WHERE task_uid = :uid AND owner = :old_owner;
