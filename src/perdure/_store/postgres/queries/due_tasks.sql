-- due_tasks: paused tasks with a due moment, earliest first: those that wait for something outside, or the others.
SELECT uid, due_at FROM perdure.tasks
WHERE namespace = %(namespace)s::text AND due_at IS NOT NULL AND status = 'paused'
  AND (COALESCE(pause_reason, '') = 'external_dependency') = (%(polls)s::int = 1)
ORDER BY due_at, uid LIMIT %(limit)s::bigint;
