-- list_values: the values of one kind, by name, after the given one.
SELECT key, version, due_at, changed_at, author, value
FROM perdure.shelf WHERE owner = %(uid)s::text AND kind = %(kind)s::text AND key > %(after)s::text
ORDER BY key LIMIT %(limit)s::bigint;
