-- rearm_pause: set the next due moment of an open question; only if its due moment is still the one that was seen.
UPDATE pauses SET due_at = :due_at, question = :question
WHERE task_uid = :uid AND path = :path AND answer IS NULL AND due_at IS :seen_due_at
RETURNING path;
