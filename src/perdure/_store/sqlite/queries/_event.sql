INSERT INTO events (task_uid, number, at, kind, author, body, digest, hash)
SELECT uid, event_count, :at, :kind, :author, :body, :digest, event_head FROM tasks WHERE uid = :uid;
