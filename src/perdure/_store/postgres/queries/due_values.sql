-- due_values: the values of one kind that are due by the given moment, those due longest first.
SELECT key, version, due_at, changed_at, author, value
FROM perdure.shelf WHERE owner = %(uid)s::text AND kind = %(kind)s::text AND due_at <= %(by)s::bigint
ORDER BY due_at, key LIMIT %(limit)s::bigint;
