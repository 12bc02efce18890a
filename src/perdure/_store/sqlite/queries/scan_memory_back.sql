-- scan_memory_back: the values whose keys are in a range, in reverse order: its lower end is included, its upper end is
-- not.
SELECT key, version, value FROM memory
WHERE namespace = :namespace AND life = '' AND key >= :first AND key < :below
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY key DESC LIMIT :limit;
