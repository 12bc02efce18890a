-- list_tasks: a page of tasks, newest first, from below the cursor. Uids rise with time, so a task added between two
-- pages belongs before the first one. No task is listed twice and none is left out.
SELECT
--> task_columns
FROM perdure.tasks
WHERE namespace = %(namespace)s::text AND is_current
  AND (%(cursor)s::text IS NULL OR uid < %(cursor)s::text)
  AND (%(status)s::text IS NULL OR status = %(status)s::text)
  AND (%(reason)s::text IS NULL OR pause_reason = %(reason)s::text)
  AND (%(agent)s::text IS NULL OR agent = %(agent)s::text)
  AND (%(since)s::bigint IS NULL OR created_at >= %(since)s::bigint)
  AND (%(archived)s::int <> 0 OR archived_at IS NULL)
  AND (%(tags)s::text = '{}' OR tags::jsonb @> %(tags)s::jsonb)
ORDER BY uid DESC LIMIT %(limit)s::bigint;
