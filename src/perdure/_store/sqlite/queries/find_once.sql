-- find_once: the events of a task whose author has this text: the key of a request that may be repeated.
SELECT number, at, kind, author, body, digest, hash
FROM events WHERE task_uid = :uid AND instr(author, :text) ORDER BY number LIMIT 1;
