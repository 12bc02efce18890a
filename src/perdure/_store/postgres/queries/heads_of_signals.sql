-- heads_of_signals: the first bytes of each signal's value, which name its key.
SELECT task_uid, name, number, substr(value, 1, 300)
FROM perdure.signals WHERE (task_uid, name, number) > (%(uid)s::text, %(signal)s::text, %(number)s::bigint)
ORDER BY task_uid, name, number LIMIT %(limit)s::bigint;
