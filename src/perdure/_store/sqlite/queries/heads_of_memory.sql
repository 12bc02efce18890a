-- heads_of_memory: the first bytes of each value, which name its key. `uid` is the namespace.
SELECT namespace, life, key, substr(value, 1, 300)
FROM memory WHERE (namespace, life, key) > (:uid, :life, :key) ORDER BY namespace, life, key LIMIT :limit;
