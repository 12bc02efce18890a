  SELECT uid, updated_at FROM tasks
  WHERE namespace = :namespace AND is_current AND archived_at IS NOT NULL AND status = :lane AND hidden = :lane_hidden
    AND (updated_at, uid) < (:at, :uid) AND updated_at >= :floor
  ORDER BY updated_at DESC, uid DESC LIMIT :look
