-- reseal_value: seal a value with another key. Its version stays, because its content does not change.
UPDATE perdure.shelf SET value = %(value)s::bytea
WHERE owner = %(uid)s::text AND kind = %(kind)s::text AND key = %(key)s::text AND value = %(old_value)s::bytea
RETURNING key;
