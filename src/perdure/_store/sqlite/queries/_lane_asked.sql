  SELECT task_uid AS uid, due_at FROM pauses
  WHERE answer IS NULL AND due_at IS NOT NULL AND (due_at, task_uid) > (:at, :uid)
    AND NOT EXISTS (SELECT 1 FROM pauses AS sooner
                    WHERE sooner.task_uid = pauses.task_uid AND sooner.answer IS NULL
                      AND (sooner.due_at, sooner.path) < (pauses.due_at, pauses.path))
  ORDER BY due_at, task_uid LIMIT :look
