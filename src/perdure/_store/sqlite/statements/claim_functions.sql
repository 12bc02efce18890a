-- claim_functions: what a trigger does for each of many tasks that are claimed: claim_free, or an error if it is
-- refused, or if the chain of events has another head than expected.
UPDATE leases SET epoch = epoch + 1, worker = :worker, taken_at = :at
WHERE task_uid = :uid AND epoch = :seen_epoch AND worker IS NULL;
SELECT RAISE(ABORT, 'refused') WHERE changes() = 0;
UPDATE tasks SET attempts = attempts + 1, started_at = COALESCE(started_at, :at), version = version + 1, updated_at = :at,
                 event_count = :number, event_head = :head
WHERE uid = :uid AND status = 'running' AND event_count = :number - 1 AND event_head = :before;
SELECT RAISE(ABORT, 'refused') WHERE changes() = 0;
UPDATE attempts SET ended_at = :at, ended = 'superseded' WHERE task_uid = :uid AND ended_at IS NULL;
INSERT INTO attempts (task_uid, number, worker, host, pid, user, agent, started_at)
VALUES (:uid, :seen_epoch + 1, :worker, :host, :pid, :user, '', :at);
INSERT INTO events (task_uid, number, at, kind, author, body, digest, hash)
VALUES (:uid, :number, :at, :kind, :author, :body, :digest, :head);
