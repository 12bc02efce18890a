-- read_events: the events of a task, in order.
SELECT number, at, kind, author, body, digest, hash
FROM perdure.events WHERE task_uid = %(uid)s::text AND number > %(after)s::bigint
ORDER BY number LIMIT %(limit)s::bigint;
