  SELECT uid FROM perdure.tasks
  WHERE namespace = %(namespace)s::text AND agent = %(lane)s::text AND agent <> '' AND uid < %(below)s::text AND uid > %(above)s::text
  ORDER BY uid DESC LIMIT %(look)s::bigint
