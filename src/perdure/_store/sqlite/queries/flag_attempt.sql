-- flag_attempt: something is to be said of the attempt under way. Of many who have seen the same version one says it.
UPDATE tasks SET version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid AND version = :version
  AND EXISTS (SELECT 1 FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker)
RETURNING version;
--> event
