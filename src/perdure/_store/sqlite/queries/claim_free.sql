-- claim_free: take the free lease of a running task, as a worker does for many tasks at once. The epoch that was seen
-- is the condition: if another process has had the lease since then, nothing is written.
UPDATE leases SET epoch = epoch + 1, worker = :worker, taken_at = :at
WHERE task_uid = :uid AND epoch = :seen_epoch AND worker IS NULL
  AND EXISTS (SELECT 1 FROM tasks WHERE uid = :uid AND status = 'running');
UPDATE attempts SET ended_at = :at, ended = 'superseded' WHERE task_uid = :uid AND ended_at IS NULL;
INSERT INTO attempts (task_uid, number, worker, host, pid, user, agent, started_at)
VALUES (:uid, :seen_epoch + 1, :worker, :host, :pid, :user, '', :at);
UPDATE tasks SET attempts = attempts + 1, started_at = COALESCE(started_at, :at), version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid;
--> event
