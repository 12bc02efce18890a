-- heads_of_calls: the beginnings of what each durable function was called with, where their keys are named.
SELECT task_uid, substr(arguments, 1, 300), substr(budget, 1, 300)
FROM perdure.calls WHERE task_uid > %(uid)s::text ORDER BY task_uid LIMIT %(limit)s::bigint;
