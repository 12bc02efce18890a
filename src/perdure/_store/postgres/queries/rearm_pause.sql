-- rearm_pause: set the next due moment of an open question; only if its due moment is still the one that was seen.
UPDATE perdure.pauses SET due_at = %(due_at)s::bigint, question = %(question)s::bytea
WHERE task_uid = %(uid)s::text AND path = %(path)s::text AND answer IS NULL
  AND due_at IS NOT DISTINCT FROM %(seen_due_at)s::bigint
RETURNING path;
