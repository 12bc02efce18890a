-- list_tasks: a page of tasks, newest first, from below the cursor. Uids rise with time, so a task added between two
-- pages belongs before the first one. No task is listed twice and none is left out.
SELECT
--> task_columns
FROM tasks
WHERE namespace = :namespace AND is_current
  AND (:cursor IS NULL OR uid < :cursor)
  AND (:status IS NULL OR status = :status)
  AND (:reason IS NULL OR pause_reason = :reason)
  AND (:agent IS NULL OR agent = :agent)
  AND (:since IS NULL OR created_at >= :since)
  AND (:archived OR archived_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM json_each(:tags) AS wanted
                  WHERE NOT EXISTS (SELECT 1 FROM json_each(tasks.tags) AS had
                                    WHERE had.key = wanted.key AND had.value = wanted.value))
ORDER BY uid DESC LIMIT :limit;
