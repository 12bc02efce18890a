-- put_memory: store one value under a key, unless another write came first. `seen` is the version the caller has read:
-- 0 means no value, or an expired one; NULL means any. With an epoch, only while that lease is ours.
INSERT INTO memory (namespace, life, key, owner, version, at, expires_at, value)
SELECT :namespace, '', :key, :owner, 1, :at, :expires_at, :value
WHERE (:epoch IS NULL OR EXISTS (
        SELECT 1 FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker))
  AND (COALESCE(:seen, 0) = 0 OR EXISTS (
        SELECT 1 FROM memory WHERE namespace = :namespace AND life = '' AND key = :key))
ON CONFLICT (namespace, life, key) DO UPDATE
SET value = excluded.value, owner = excluded.owner, version = memory.version + 1, at = excluded.at,
    expires_at = excluded.expires_at
WHERE :seen IS NULL OR memory.version = :seen OR (:seen = 0 AND memory.expires_at <= :at)
RETURNING version;
