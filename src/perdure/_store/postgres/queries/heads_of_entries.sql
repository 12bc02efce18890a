-- heads_of_entries: the first bytes of each journal entry, which name its key.
SELECT task_uid, line, position, substr(entry, 1, 300)
FROM perdure.journal WHERE (task_uid, line, position) > (%(uid)s::text, %(line)s::bigint, %(number)s::bigint)
ORDER BY task_uid, line, position LIMIT %(limit)s::bigint;
