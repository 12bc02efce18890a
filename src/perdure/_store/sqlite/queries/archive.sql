-- archive: hide a finished task from lists, or show it again.
UPDATE tasks SET archived_at = :archived_at, version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid AND status IN ('completed', 'failed', 'cancelled')
RETURNING version;
--> event
