-- heads_of_memory: the beginning of each value, where its key is named. `uid` is the namespace.
SELECT namespace, life, key, substr(value, 1, 300)
FROM memory WHERE (namespace, life, key) > (:uid, :life, :key) ORDER BY namespace, life, key LIMIT :limit;
