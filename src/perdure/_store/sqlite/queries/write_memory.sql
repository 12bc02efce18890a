-- write_memory: store many values and delete others: all of them or none. `rows` is a JSON list; `seen` of a row is as
-- for put_memory, and its value lies in `contents` from `start` on, `size` bytes long; a key without a size is deleted.
-- With an epoch, only while that lease is ours. The answer is each row's version; for a deleted key, its last one.
SELECT versions FROM (
  SELECT json_group_array(version) AS versions FROM (
    SELECT COALESCE(kept.version, 0) + (asked.value ->> 'size' IS NOT NULL) AS version
    FROM json_each(:rows) AS asked LEFT JOIN memory AS kept
      ON kept.namespace = :namespace AND kept.life = '' AND kept.key = asked.value ->> 'key'
    ORDER BY asked.key))
WHERE (:epoch IS NULL OR EXISTS (
        SELECT 1 FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker))
  AND NOT EXISTS (
    SELECT 1 FROM json_each(:rows) AS asked LEFT JOIN memory AS kept
      ON kept.namespace = :namespace AND kept.life = '' AND kept.key = asked.value ->> 'key'
    WHERE asked.value ->> 'seen' <> COALESCE(kept.version, 0)
      AND NOT (asked.value ->> 'seen' = 0 AND COALESCE(kept.expires_at <= :at, false)));
INSERT INTO memory (namespace, life, key, owner, version, at, expires_at, value)
SELECT :namespace, '', value ->> 'key', value ->> 'owner', 1, :at, value ->> 'expires_at',
       substr(:contents, value ->> 'start', value ->> 'size')
FROM json_each(:rows) WHERE value ->> 'size' IS NOT NULL
ON CONFLICT (namespace, life, key) DO UPDATE
SET value = excluded.value, owner = excluded.owner, version = memory.version + 1, at = excluded.at,
    expires_at = excluded.expires_at;
DELETE FROM memory WHERE namespace = :namespace AND life = ''
  AND key IN (SELECT value ->> 'key' FROM json_each(:rows) WHERE value ->> 'size' IS NULL);
