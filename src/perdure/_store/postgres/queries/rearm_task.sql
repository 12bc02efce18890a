-- rearm_task: set the next due moment of a paused task; only if its due moment is still the one that was seen.
UPDATE perdure.tasks SET due_at = %(due_at)s::bigint, pause = %(pause)s::bytea
WHERE uid = %(uid)s::text AND status = 'paused' AND due_at IS NOT DISTINCT FROM %(seen_due_at)s::bigint
RETURNING version;
