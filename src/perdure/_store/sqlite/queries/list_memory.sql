-- list_memory: the keys from one on and below another, in their order.
SELECT key, version, expires_at FROM memory
WHERE namespace = :namespace AND life = :life AND key >= :first AND (:below IS NULL OR key < :below)
ORDER BY key LIMIT :limit;
