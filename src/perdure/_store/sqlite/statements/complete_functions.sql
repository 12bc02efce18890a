-- complete_functions: what a trigger does for each of many tasks that end: complete_function, or an error if it is
-- refused, or if the chain of events has another head than expected.
UPDATE tasks SET status = 'completed', version = version + 1, updated_at = :at, finished_at = :at,
                 pause_reason = NULL, pause = NULL, due_at = NULL, result = :result, error = NULL,
                 event_count = :number, event_head = :head
WHERE uid = :uid AND is_current AND status = 'running' AND event_count = :number - 1 AND event_head = :before;
SELECT RAISE(ABORT, 'refused') WHERE changes() = 0;
UPDATE leases SET worker = NULL WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker;
SELECT RAISE(ABORT, 'refused') WHERE changes() = 0;
UPDATE attempts SET ended_at = :at, ended = 'completed' WHERE task_uid = :uid AND ended_at IS NULL;
INSERT INTO events (task_uid, number, at, kind, author, body, digest, hash)
VALUES (:uid, :number, :at, :kind, :author, :body, :digest, :head);
