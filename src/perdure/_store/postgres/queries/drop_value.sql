-- drop_value: delete a value, unless it was changed since it was read.
DELETE FROM perdure.shelf
WHERE owner = %(uid)s::text AND kind = %(kind)s::text AND key = %(key)s::text AND version = %(version)s::bigint
RETURNING version;
