-- add_value: store a value under a name that is free.
INSERT INTO shelf (owner, kind, key, version, due_at, changed_at, author, value)
VALUES (:uid, :kind, :key, 1, :due_at, :at, :author, :value)
ON CONFLICT DO NOTHING
RETURNING version;
