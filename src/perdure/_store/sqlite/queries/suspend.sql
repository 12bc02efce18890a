-- suspend: pause the task until its open questions are answered; its attempt has been unwound. If one was answered
-- meanwhile, nothing changes and the caller continues with the answer.
UPDATE tasks SET status = 'paused', version = version + 1, updated_at = :at,
                 pause_reason = :pause_reason, pause = :pause, due_at = :due_at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid AND status = 'running'
  AND EXISTS (SELECT 1 FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker)
  AND NOT EXISTS (SELECT 1 FROM pauses WHERE task_uid = :uid AND answer IS NOT NULL
                    AND path IN (SELECT value FROM json_each(:paths)))
RETURNING version;
UPDATE leases SET worker = NULL WHERE task_uid = :uid;
UPDATE attempts SET ended_at = :at, ended = 'paused' WHERE task_uid = :uid AND ended_at IS NULL;
--> event
