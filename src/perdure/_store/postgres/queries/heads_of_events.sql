-- heads_of_events: the first bytes of each event's body, which name its key.
SELECT task_uid, number, substr(body, 1, 300)
FROM perdure.events WHERE (task_uid, number) > (%(uid)s::text, %(number)s::bigint)
ORDER BY task_uid, number LIMIT %(limit)s::bigint;
