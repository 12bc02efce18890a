  SELECT uid, id FROM perdure.tasks
  WHERE namespace = %(namespace)s::text AND is_current AND id >= %(id_from)s::text AND id < %(id_to)s::text AND id > %(above)s::text
  ORDER BY id LIMIT %(look)s::bigint
