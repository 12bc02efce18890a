-- find_signed: a row if an event of this task, or a value or webhook of this owner, was written by the author with this text.
-- Events of attempts do not count: a request that takes a lease has not yet done what was asked for.
SELECT 1 FROM events
WHERE task_uid = :uid AND instr(author, :text) AND substr(kind, 1, 8) <> 'attempt '
UNION ALL
SELECT 1 FROM shelf WHERE owner = :uid AND instr(author, :text)
UNION ALL
SELECT 1 FROM webhooks WHERE 'namespace:' || namespace = :uid AND instr(author, :text)
LIMIT 1;
