-- reseal_checkpoint: seal a frame with another key, unless it became a keyframe or was deleted meanwhile. A large frame
-- gets new chunks under a new owner; the old chunks are deleted with the row that named them.
WITH resealed AS (
  UPDATE perdure.checkpoints
  SET frame = %(frame)s::bytea, stored = %(stored)s::bigint, chunks = %(chunks)s::bigint
  WHERE task_uid = %(uid)s::text AND seq = %(target)s::bigint AND frame = %(old_frame)s::bytea
  RETURNING seq
),
no_chunks AS (
  DELETE FROM perdure.chunks
  WHERE task_uid = %(uid)s::text AND owner = %(old_owner)s::text AND EXISTS (SELECT 1 FROM resealed)
)
SELECT seq FROM resealed;
