stored AS (
  INSERT INTO perdure.checkpoints (task_uid, seq, line, parent, base, at, label, cause, depth, author,
                                   size, stored, chain_size, chain_length, chunks, frame)
  SELECT uid, 0, 1, NULL, NULL, %(at)s::bigint, '', %(cause)s::text, 0, %(author)s::text,
         %(size)s::bigint, %(stored)s::bigint, 0, 0, %(chunks)s::bigint, %(frame)s::bytea
  FROM changed
),
