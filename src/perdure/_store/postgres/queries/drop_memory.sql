-- drop_memory: nothing is kept under this key any more. `before`, if given, spares what expires later, or never.
DELETE FROM perdure.memory
WHERE namespace = %(namespace)s::text AND life = '' AND key = %(key)s::text
  AND (%(before)s::bigint IS NULL OR expires_at <= %(before)s::bigint)
RETURNING version;
