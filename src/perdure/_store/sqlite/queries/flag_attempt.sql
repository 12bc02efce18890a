-- flag_attempt: add an event about the attempt under way. Of several workers that have seen the same version, one
-- succeeds.
UPDATE tasks SET version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid AND version = :version
  AND EXISTS (SELECT 1 FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker)
RETURNING version;
--> event
