-- outside_waits: paused tasks that wait for something outside, with their description of it.
SELECT uid, due_at, pause FROM tasks INDEXED BY tasks_due
WHERE namespace = :namespace AND due_at IS NOT NULL AND status = 'paused' AND pause_reason = 'external_dependency'
  AND uid > :after
ORDER BY uid LIMIT :limit;
