-- heads_of_signals: the beginning of what each signal carries, where its key is named.
SELECT task_uid, name, number, substr(value, 1, 300)
FROM perdure.signals WHERE (task_uid, name, number) > (%(uid)s::text, %(signal)s::text, %(number)s::bigint)
ORDER BY task_uid, name, number LIMIT %(limit)s::bigint;
