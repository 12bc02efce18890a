  SELECT uid FROM perdure.tasks
  WHERE namespace = %(namespace)s::text AND is_current AND archived_at IS NULL AND status = %(lane)s::text AND hidden = %(lane_hidden)s::bigint
    AND uid < %(below)s::text AND uid > %(above)s::text
  ORDER BY uid DESC LIMIT %(look)s::bigint
