  SELECT uid, updated_at FROM perdure.tasks
  WHERE namespace = %(namespace)s::text AND is_current AND archived_at IS NULL AND status = %(lane)s::text AND hidden = %(lane_hidden)s::bigint
    AND (updated_at, uid) < (%(at)s::bigint, %(uid)s::text) AND updated_at >= %(floor)s::bigint
  ORDER BY updated_at DESC, uid DESC LIMIT %(look)s::bigint
