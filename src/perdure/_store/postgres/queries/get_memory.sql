-- get_memory: what is kept under a key, with its version; of a former life by its uid.
SELECT version, at, expires_at, value FROM perdure.memory
WHERE namespace = %(namespace)s::text AND life = %(life)s::text AND key = %(key)s::text;
