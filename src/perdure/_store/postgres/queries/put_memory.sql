-- put_memory: store one value under a key, unless another write came first. `seen` is the version the caller has read:
-- 0 means no value, or an expired one; NULL means any. With an epoch, only while that lease is ours.
--> fence
kept AS (
  INSERT INTO perdure.memory (namespace, life, key, owner, version, at, expires_at, value)
  SELECT %(namespace)s::text, '', %(key)s::text, %(owner)s::text, 1, %(at)s::bigint, %(expires_at)s::bigint,
         %(value)s::bytea
  WHERE (%(epoch)s::bigint IS NULL OR EXISTS (SELECT 1 FROM fence))
    AND (COALESCE(%(seen)s::bigint, 0) = 0 OR EXISTS (
          SELECT 1 FROM perdure.memory
          WHERE namespace = %(namespace)s::text AND life = '' AND key = %(key)s::text))
  ON CONFLICT (namespace, life, key) DO UPDATE
  SET value = excluded.value, owner = excluded.owner, version = memory.version + 1, at = excluded.at,
      expires_at = excluded.expires_at
  WHERE %(seen)s::bigint IS NULL OR memory.version = %(seen)s::bigint
     OR (%(seen)s::bigint = 0 AND memory.expires_at <= %(at)s::bigint)
  RETURNING version
)
SELECT version FROM kept;
