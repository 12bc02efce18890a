-- record_memory: store one value under a key with the journal entry that records it, only while the lease is still
-- ours. The entry is written in any case: `entry` if the value was stored, `refused` if the version is no longer `seen`
-- (as for put_memory). Answers with the position and the new version, 0 if the value was refused.
INSERT INTO journal (task_uid, line, position, entry)
SELECT :uid, :line, :position, CASE
         WHEN :seen IS NULL THEN :entry
         WHEN EXISTS (SELECT 1 FROM memory WHERE namespace = :namespace AND life = '' AND key = :key
                        AND (version = :seen OR (:seen = 0 AND expires_at <= :at))) THEN :entry
         WHEN :seen = 0 AND NOT EXISTS (
           SELECT 1 FROM memory WHERE namespace = :namespace AND life = '' AND key = :key) THEN :entry
         ELSE :refused END
FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker
ON CONFLICT DO NOTHING
RETURNING position, CASE WHEN entry = :entry THEN 1 + COALESCE((
  SELECT version FROM memory WHERE namespace = :namespace AND life = '' AND key = :key), 0) ELSE 0 END;
INSERT INTO memory (namespace, life, key, owner, version, at, expires_at, value)
SELECT :namespace, '', :key, :owner, 1, :at, :expires_at, :value
WHERE COALESCE(:seen, 0) = 0 OR EXISTS (
        SELECT 1 FROM memory WHERE namespace = :namespace AND life = '' AND key = :key)
ON CONFLICT (namespace, life, key) DO UPDATE
SET value = excluded.value, owner = excluded.owner, version = memory.version + 1, at = excluded.at,
    expires_at = excluded.expires_at
WHERE :seen IS NULL OR memory.version = :seen OR (:seen = 0 AND memory.expires_at <= :at);
