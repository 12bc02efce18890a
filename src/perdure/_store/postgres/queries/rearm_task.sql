-- rearm_task: a paused task is looked at again later; only for the one that saw when it was due.
UPDATE perdure.tasks SET due_at = %(due_at)s::bigint, pause = %(pause)s::bytea
WHERE uid = %(uid)s::text AND status = 'paused' AND due_at IS NOT DISTINCT FROM %(seen_due_at)s::bigint
RETURNING version;
