-- complete_function: record the end of a durable function, while the lease is still ours.
UPDATE tasks SET status = 'completed', version = version + 1, updated_at = :at, finished_at = :at,
                 pause_reason = NULL, pause = NULL, due_at = NULL, result = :result, error = NULL,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid AND is_current AND status = 'running'
  AND EXISTS (SELECT 1 FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker);
UPDATE leases SET worker = NULL WHERE task_uid = :uid;
UPDATE attempts SET ended_at = :at, ended = 'completed' WHERE task_uid = :uid AND ended_at IS NULL;
--> event
