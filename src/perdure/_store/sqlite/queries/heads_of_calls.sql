-- heads_of_calls: the first bytes of each durable function's sealed arguments, which name their key.
SELECT task_uid, substr(arguments, 1, 300), substr(budget, 1, 300)
FROM calls WHERE task_uid > :uid ORDER BY task_uid LIMIT :limit;
