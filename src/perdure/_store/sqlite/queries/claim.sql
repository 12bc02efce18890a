-- claim: take a lease that was seen free, ours, or lost by its holder. The epoch that was seen is the condition: if
-- another process changed the lease since then, that process wins.
UPDATE leases SET epoch = epoch + 1, worker = :worker, taken_at = :at
WHERE task_uid = :uid AND epoch = :seen_epoch AND worker IS :seen_worker
  AND EXISTS (SELECT 1 FROM tasks WHERE uid = :uid AND status = :before)
RETURNING epoch;
UPDATE attempts SET ended_at = :at, ended = :former WHERE task_uid = :uid AND ended_at IS NULL;
INSERT INTO attempts (task_uid, number, worker, host, pid, user, agent, started_at)
SELECT task_uid, epoch, :worker, :host, :pid, :user, :agent, :at FROM leases WHERE task_uid = :uid;
UPDATE tasks SET status = 'running', attempts = attempts + 1, started_at = COALESCE(started_at, :at),
                 version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid;
--> event
