INSERT INTO events (task_uid, number, at, kind, author, body, digest, hash)
VALUES (:uid, 1, :at, :kind, :author, :body, :digest, :head);
