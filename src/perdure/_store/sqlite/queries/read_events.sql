-- read_events: the events of a task, in order.
SELECT number, at, kind, author, body, digest, hash
FROM events WHERE task_uid = :uid AND number > :after ORDER BY number LIMIT :limit;
