-- rearm_task: set the next due moment of a paused task; only if its due moment is still the one that was seen.
UPDATE tasks SET due_at = :due_at, pause = :pause
WHERE uid = :uid AND status = 'paused' AND due_at IS :seen_due_at
RETURNING version;
