stored AS (
  INSERT INTO perdure.checkpoints (task_uid, seq, line, parent, base, at, label, cause, depth, author,
                                   size, stored, chain_size, chain_length, position, chunks, frame)
  SELECT uid, seq, line, %(parent)s::bigint, %(base)s::bigint, %(at)s::bigint, %(label)s::text, %(cause)s::text,
         %(depth)s::bigint, %(author)s::text, %(size)s::bigint, %(stored)s::bigint, %(chain_size)s::bigint,
         %(chain_length)s::bigint, %(position)s::bigint, %(chunks)s::bigint, %(frame)s::bytea
  FROM changed WHERE %(frame)s::bytea IS NOT NULL
),
