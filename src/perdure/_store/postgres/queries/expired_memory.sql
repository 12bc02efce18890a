-- expired_memory: the keys whose values have expired.
SELECT key FROM perdure.memory
WHERE namespace = %(namespace)s::text AND life = '' AND expires_at <= %(before)s::bigint
ORDER BY key LIMIT %(limit)s::bigint;
