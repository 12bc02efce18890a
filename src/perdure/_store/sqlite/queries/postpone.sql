-- postpone: let a task that has not begun begin later, with other arguments.
UPDATE tasks SET version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid AND is_current AND status IN ('pending', 'running')
  AND EXISTS (SELECT 1 FROM leases WHERE task_uid = :uid AND epoch = 0)
  AND EXISTS (SELECT 1 FROM calls WHERE task_uid = :uid)
RETURNING version;
UPDATE calls SET arguments = :arguments, not_before = :not_before WHERE task_uid = :uid;
--> event
