  SELECT uid FROM tasks
  WHERE namespace = :namespace AND agent = :lane AND agent <> '' AND uid < :below AND uid > :above
  ORDER BY uid DESC LIMIT :look
