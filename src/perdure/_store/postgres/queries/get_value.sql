-- get_value: one value with its other columns.
SELECT key, version, due_at, changed_at, author, value
FROM perdure.shelf WHERE owner = %(uid)s::text AND kind = %(kind)s::text AND key = %(key)s::text;
