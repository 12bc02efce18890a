-- change_value: another value under a name, if nobody has changed it since it was read.
UPDATE shelf SET version = version + 1, due_at = :due_at, changed_at = :at, author = :author, value = :value
WHERE owner = :uid AND kind = :kind AND key = :key AND version = :version
RETURNING version;
