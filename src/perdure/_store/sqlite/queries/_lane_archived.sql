  SELECT uid FROM tasks
  WHERE namespace = :namespace AND is_current AND archived_at IS NOT NULL AND status = :lane AND hidden = :lane_hidden
    AND uid < :below AND uid > :above
  ORDER BY uid DESC LIMIT :look
