-- rearm_pause: an open question is looked at again later; only for the one that saw when it was due.
UPDATE pauses SET due_at = :due_at, question = :question
WHERE task_uid = :uid AND path = :path AND answer IS NULL AND due_at IS :seen_due_at
RETURNING path;
