told AS (
  INSERT INTO perdure.events (task_uid, number, at, kind, author, body, digest, hash)
  SELECT uid, event_count, %(at)s::bigint, %(kind)s::text, %(author)s::text, %(body)s::bytea, %(digest)s::bytea,
         event_head
  FROM changed
)
