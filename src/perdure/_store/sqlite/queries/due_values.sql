-- due_values: the values of one kind that are due by the given moment, those due longest first.
SELECT key, version, due_at, changed_at, author, value
FROM shelf WHERE owner = :uid AND kind = :kind AND due_at <= :by
ORDER BY due_at, key LIMIT :limit;
