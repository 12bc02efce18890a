-- list_memory: the keys in a range, in order: its lower end is included, its upper end is not.
SELECT key, version, expires_at FROM memory
WHERE namespace = :namespace AND life = :life AND key >= :first AND (:below IS NULL OR key < :below)
ORDER BY key LIMIT :limit;
