-- find_once: the events of a task whose author contains this text: the key of a request that can be repeated.
SELECT number, at, kind, author, body, digest, hash
FROM perdure.events WHERE task_uid = %(uid)s::text AND strpos(author, %(text)s::text) > 0 ORDER BY number LIMIT 1;
