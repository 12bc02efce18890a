-- drop_chunks: delete the chunks of an owner that no checkpoint names. The engine has locked the task's row, so no
-- checkpoint can come to name them meanwhile.
DELETE FROM perdure.chunks
WHERE task_uid = %(uid)s::text AND owner = %(owner)s::text
  AND NOT EXISTS (SELECT 1 FROM perdure.checkpoints AS named
                  WHERE named.task_uid = %(uid)s::text AND named.chunks > 0
                    AND named.frame = convert_to(%(owner)s::text, 'UTF8'))
RETURNING owner;
