  SELECT task_uid AS uid, due_at FROM perdure.pauses
  WHERE answer IS NULL AND due_at IS NOT NULL AND (due_at, task_uid) > (%(at)s::bigint, %(uid)s::text)
    AND NOT EXISTS (SELECT 1 FROM perdure.pauses AS sooner
                    WHERE sooner.task_uid = pauses.task_uid AND sooner.answer IS NULL
                      AND (sooner.due_at, sooner.path) < (pauses.due_at, pauses.path))
  ORDER BY due_at, task_uid LIMIT %(look)s::bigint
