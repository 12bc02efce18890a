  SELECT uid, updated_at FROM perdure.tasks
  WHERE namespace = %(namespace)s::text AND (updated_at, uid) < (%(at)s::bigint, %(uid)s::text)
  ORDER BY updated_at DESC, uid DESC LIMIT %(look)s::bigint
