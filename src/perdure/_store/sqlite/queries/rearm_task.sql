-- rearm_task: a paused task is looked at again later; only for the one that saw when it was due.
UPDATE tasks SET due_at = :due_at, pause = :pause
WHERE uid = :uid AND status = 'paused' AND due_at IS :seen_due_at
RETURNING version;
