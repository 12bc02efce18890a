-- get_memory: the value under a key, with its version. `life` is the uid of an earlier task that had the same id.
SELECT version, at, expires_at, value FROM perdure.memory
WHERE namespace = %(namespace)s::text AND life = %(life)s::text AND key = %(key)s::text;
