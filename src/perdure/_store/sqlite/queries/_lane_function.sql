  SELECT task_uid AS uid FROM calls WHERE function = :lane AND task_uid < :below AND task_uid > :above
  ORDER BY task_uid DESC LIMIT :look
