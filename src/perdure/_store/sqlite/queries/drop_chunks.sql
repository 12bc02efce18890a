-- drop_chunks: delete the chunks of an owner that no checkpoint names.
DELETE FROM chunks
WHERE task_uid = :uid AND owner = :owner
  AND NOT EXISTS (SELECT 1 FROM checkpoints AS named
                  WHERE named.task_uid = :uid AND named.chunks > 0 AND named.frame = CAST(:owner AS BLOB))
RETURNING owner;
