-- scan_memory_back: the values whose keys are in a range, in reverse order: its lower end is included, its upper end is
-- not.
SELECT key, version, value FROM perdure.memory
WHERE namespace = %(namespace)s::text AND life = '' AND key >= %(first)s::text AND key < %(below)s::text
  AND (expires_at IS NULL OR expires_at > %(now)s::bigint)
ORDER BY key DESC LIMIT %(limit)s::bigint;
