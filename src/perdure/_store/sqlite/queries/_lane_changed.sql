  SELECT uid, updated_at FROM tasks
  WHERE namespace = :namespace AND (updated_at, uid) < (:at, :uid)
  ORDER BY updated_at DESC, uid DESC LIMIT :look
