-- complete_functions: complete_function for many tasks that are known to be at work under the leases they had.
WITH given (of_uid, ended, outcome, number, head) AS (VALUES (:uid, :at, :result, :number, :head))
UPDATE tasks SET status = 'completed', version = version + 1, updated_at = ended, finished_at = ended,
                 pause_reason = NULL, pause = NULL, due_at = NULL, result = outcome, error = NULL,
                 event_count = number, event_head = head
FROM given WHERE uid = of_uid;
UPDATE leases SET worker = NULL WHERE task_uid IN (SELECT value FROM json_each(?));
UPDATE attempts SET ended_at = (SELECT finished_at FROM tasks WHERE uid = task_uid), ended = 'completed'
WHERE task_uid IN (SELECT value FROM json_each(?)) AND ended_at IS NULL;
INSERT INTO events (task_uid, at, kind, author, body, digest, number, hash)
VALUES (:uid, :at, :kind, :author, :body, :digest, :number, :head);
