  SELECT uid, due_at FROM perdure.tasks
  WHERE due_at IS NOT NULL AND (due_at, uid) > (%(at)s::bigint, %(uid)s::text)
  ORDER BY due_at, uid LIMIT %(look)s::bigint
