-- rearm_pause: an open question is looked at again later; only for the one that saw when it was due.
UPDATE perdure.pauses SET due_at = %(due_at)s::bigint, question = %(question)s::bytea
WHERE task_uid = %(uid)s::text AND path = %(path)s::text AND answer IS NULL
  AND due_at IS NOT DISTINCT FROM %(seen_due_at)s::bigint
RETURNING path;
