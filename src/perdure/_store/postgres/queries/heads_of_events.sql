-- heads_of_events: the beginning of each event's body, where its key is named.
SELECT task_uid, number, substr(body, 1, 300)
FROM perdure.events WHERE (task_uid, number) > (%(uid)s::text, %(number)s::bigint)
ORDER BY task_uid, number LIMIT %(limit)s::bigint;
