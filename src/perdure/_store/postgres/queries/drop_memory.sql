-- drop_memory: delete the value of a key. With `before`, only a value that expires before that moment.
DELETE FROM perdure.memory
WHERE namespace = %(namespace)s::text AND life = '' AND key = %(key)s::text
  AND (%(before)s::bigint IS NULL OR expires_at <= %(before)s::bigint)
RETURNING version;
