-- heads_of_memory: the first bytes of each value, which name its key. `uid` is the namespace.
SELECT namespace, life, key, substr(value, 1, 300)
FROM perdure.memory WHERE (namespace, life, key) > (%(uid)s::text, %(life)s::text, %(key)s::text)
ORDER BY namespace, life, key LIMIT %(limit)s::bigint;
