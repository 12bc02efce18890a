-- heads_of_values: the beginning of each value, where its key is named.
SELECT owner, kind, key, substr(value, 1, 300)
FROM shelf WHERE (owner, kind, key) > (:uid, :kind, :key)
ORDER BY owner, kind, key LIMIT :limit;
