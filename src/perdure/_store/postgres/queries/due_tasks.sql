-- due_tasks: paused tasks that are to be looked at at some moment, the earliest first.
SELECT uid, due_at FROM perdure.tasks
WHERE namespace = %(namespace)s::text AND due_at IS NOT NULL AND status = 'paused'
ORDER BY due_at, uid LIMIT %(limit)s::bigint;
