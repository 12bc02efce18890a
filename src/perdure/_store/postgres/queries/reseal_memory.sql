-- reseal_memory: seal a value with another key. `uid` is the namespace.
UPDATE perdure.memory SET value = %(value)s::bytea
WHERE namespace = %(uid)s::text AND life = %(life)s::text AND key = %(key)s::text AND value = %(old_value)s::bytea
RETURNING version;
