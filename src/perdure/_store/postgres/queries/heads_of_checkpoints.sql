-- heads_of_checkpoints: the first bytes of each frame, which name its key. A large frame begins in its first chunk.
SELECT task_uid, seq,
       CASE WHEN chunks > 0
            THEN (SELECT substr(body, 1, 300) FROM perdure.chunks
                  WHERE chunks.task_uid = checkpoints.task_uid AND convert_to(owner, 'UTF8') = frame AND n = 0)
            ELSE substr(frame, 1, 300) END
FROM perdure.checkpoints WHERE (task_uid, seq) > (%(uid)s::text, %(number)s::bigint)
ORDER BY task_uid, seq LIMIT %(limit)s::bigint;
