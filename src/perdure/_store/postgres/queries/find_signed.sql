-- find_signed: a row if an event of this task, or a value or webhook of this owner, was written by the author with this text.
-- Events of attempts do not count: a request that takes a lease has not yet done what was asked for.
SELECT 1 FROM perdure.events
WHERE task_uid = %(uid)s::text AND strpos(author, %(text)s::text) > 0 AND substr(kind, 1, 8) <> 'attempt '
UNION ALL
SELECT 1 FROM perdure.shelf WHERE owner = %(uid)s::text AND strpos(author, %(text)s::text) > 0
UNION ALL
SELECT 1 FROM perdure.webhooks WHERE 'namespace:' || namespace = %(uid)s::text AND strpos(author, %(text)s::text) > 0
LIMIT 1;
