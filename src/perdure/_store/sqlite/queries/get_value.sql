-- get_value: one value with its other columns.
SELECT key, version, due_at, changed_at, author, value
FROM shelf WHERE owner = :uid AND kind = :kind AND key = :key;
