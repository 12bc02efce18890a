-- get_memories: the values under these keys, which are given as a JSON list.
SELECT key, version, value FROM memory
WHERE namespace = :namespace AND life = '' AND key IN (SELECT value FROM json_each(:keys))
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY key;
