-- change_value: replace a named value, unless it was changed since it was read.
UPDATE perdure.shelf SET version = version + 1, due_at = %(due_at)s::bigint, changed_at = %(at)s::bigint, author = %(author)s::text, value = %(value)s::bytea
WHERE owner = %(uid)s::text AND kind = %(kind)s::text AND key = %(key)s::text AND version = %(version)s::bigint
RETURNING version;
