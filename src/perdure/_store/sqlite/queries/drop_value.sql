-- drop_value: delete a value, unless it was changed since it was read.
DELETE FROM shelf
WHERE owner = :uid AND kind = :kind AND key = :key AND version = :version
RETURNING version;
