-- heads_of_checkpoints: the first bytes of each frame, which name its key. A large frame begins in its first chunk.
SELECT task_uid, seq,
       CASE WHEN chunks > 0
            THEN (SELECT substr(body, 1, 300) FROM chunks
                  WHERE chunks.task_uid = checkpoints.task_uid AND owner = CAST(frame AS TEXT) AND n = 0)
            ELSE substr(frame, 1, 300) END
FROM checkpoints WHERE (task_uid, seq) > (:uid, :number) ORDER BY task_uid, seq LIMIT :limit;
