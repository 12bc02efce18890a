-- list_values: the values of one kind, by name, after the given one.
SELECT key, version, due_at, changed_at, author, value
FROM shelf WHERE owner = :uid AND kind = :kind AND key > :after
ORDER BY key LIMIT :limit;
