-- heads_of_values: the first bytes of each value, which name its key.
SELECT owner, kind, key, substr(value, 1, 300)
FROM shelf WHERE (owner, kind, key) > (:uid, :kind, :key)
ORDER BY owner, kind, key LIMIT :limit;
