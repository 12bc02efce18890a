-- heads_of_values: the first bytes of each value, which name its key.
SELECT owner, kind, key, substr(value, 1, 300)
FROM perdure.shelf WHERE (owner, kind, key) > (%(uid)s::text, %(kind)s::text, %(key)s::text)
ORDER BY owner, kind, key LIMIT %(limit)s::bigint;
