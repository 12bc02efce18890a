-- drop_value: a value is gone, if nobody has changed it since it was read.
DELETE FROM shelf
WHERE owner = :uid AND kind = :kind AND key = :key AND version = :version
RETURNING version;
