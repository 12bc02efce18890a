  SELECT task_uid AS uid FROM perdure.calls WHERE parent_uid = %(lane)s::text AND task_uid < %(below)s::text AND task_uid > %(above)s::text
  ORDER BY task_uid DESC LIMIT %(look)s::bigint
