-- find_once: the events of a task whose author contains this text: the key of a request that can be repeated.
SELECT number, at, kind, author, body, digest, hash
FROM events WHERE task_uid = :uid AND instr(author, :text) ORDER BY number LIMIT 1;
