-- complete_functions: complete_function for many tasks that are known to be at work under the leases they had.
UPDATE tasks SET status = 'completed', version = version + 1, updated_at = :at, finished_at = :at,
                 pause_reason = NULL, pause = NULL, due_at = NULL, result = :result, error = NULL,
                 event_count = :number, event_head = :head
WHERE uid = :uid;
UPDATE leases SET worker = NULL WHERE task_uid = :uid;
UPDATE attempts SET ended_at = :at, ended = 'completed' WHERE task_uid = :uid AND ended_at IS NULL;
INSERT INTO events (task_uid, number, at, kind, author, body, digest, hash)
VALUES (:uid, :number, :at, :kind, :author, :body, :digest, :head);
