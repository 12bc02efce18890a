-- scan_memory: what is kept under the keys from one on and below another, in their order.
SELECT key, version, value FROM memory
WHERE namespace = :namespace AND life = '' AND key >= :first AND key < :below
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY key LIMIT :limit;
