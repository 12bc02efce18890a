-- prune: delete this checkpoint, unless it is the state, is pinned, or is the base of another one. The engine has
-- locked the task's row, so no delta of it can be added meanwhile.
WITH pruned AS (
  DELETE FROM perdure.checkpoints AS doomed
  WHERE task_uid = %(uid)s::text AND seq = %(target)s::bigint AND NOT pinned
    AND seq <> (SELECT state_seq FROM perdure.tasks WHERE uid = %(uid)s::text)
    AND NOT EXISTS (SELECT 1 FROM perdure.checkpoints AS later
                    WHERE later.task_uid = %(uid)s::text AND later.base = %(target)s::bigint)
  RETURNING seq
),
no_chunks AS (
  DELETE FROM perdure.chunks
  WHERE task_uid = %(uid)s::text AND owner = %(owner)s::text AND EXISTS (SELECT 1 FROM pruned)
)
SELECT seq FROM pruned;
