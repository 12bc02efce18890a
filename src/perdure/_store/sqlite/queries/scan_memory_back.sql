-- scan_memory_back: what is kept under the keys from one on and below another, the last first.
SELECT key, version, value FROM memory
WHERE namespace = :namespace AND life = '' AND key >= :first AND key < :below
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY key DESC LIMIT :limit;
