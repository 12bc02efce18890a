-- remind_pause: the same as rearm_pause, with an event that says a question is still open.
UPDATE pauses SET due_at = :due_at
WHERE task_uid = :uid AND path = :path AND answer IS NULL AND due_at IS :seen_due_at
RETURNING path;
UPDATE tasks SET version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid;
--> event
