-- outside_waits: paused tasks that wait for something outside, with their description of it.
SELECT uid, due_at, pause FROM perdure.tasks
WHERE namespace = %(namespace)s::text AND due_at IS NOT NULL AND status = 'paused'
  AND pause_reason = 'external_dependency' AND uid > %(after)s::text
ORDER BY uid LIMIT %(limit)s::bigint;
