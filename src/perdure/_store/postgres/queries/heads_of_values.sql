-- heads_of_values: the beginning of each value, where its key is named.
SELECT owner, kind, key, substr(value, 1, 300)
FROM perdure.shelf WHERE (owner, kind, key) > (%(uid)s::text, %(kind)s::text, %(key)s::text)
ORDER BY owner, kind, key LIMIT %(limit)s::bigint;
