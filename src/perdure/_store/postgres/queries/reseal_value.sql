-- reseal_value: the same value under another key; its version stays, as nothing has changed.
UPDATE perdure.shelf SET value = %(value)s::bytea
WHERE owner = %(uid)s::text AND kind = %(kind)s::text AND key = %(key)s::text AND value = %(old_value)s::bytea
RETURNING key;
