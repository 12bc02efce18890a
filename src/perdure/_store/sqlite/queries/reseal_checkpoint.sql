-- reseal_checkpoint: seal a frame with another key, unless it became a keyframe or was deleted meanwhile. A large frame
-- gets new chunks under a new owner; the old chunks are deleted with the row that named them.
UPDATE checkpoints SET frame = :frame, stored = :stored, chunks = :chunks
WHERE task_uid = :uid AND seq = :target AND frame = :old_frame
RETURNING seq;
DELETE FROM chunks WHERE task_uid = :uid AND owner = :old_owner;
