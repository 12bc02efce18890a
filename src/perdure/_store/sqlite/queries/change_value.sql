-- change_value: replace a named value, unless it was changed since it was read.
UPDATE shelf SET version = version + 1, due_at = :due_at, changed_at = :at, author = :author, value = :value
WHERE owner = :uid AND kind = :kind AND key = :key AND version = :version
RETURNING version;
