  SELECT uid, id FROM tasks
  WHERE namespace = :namespace AND is_current AND id >= :id_from AND id < :id_to AND id > :above
  ORDER BY id LIMIT :look
