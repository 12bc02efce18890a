  SELECT uid, due_at FROM tasks
  WHERE due_at IS NOT NULL AND (due_at, uid) > (:at, :uid)
  ORDER BY due_at, uid LIMIT :look
