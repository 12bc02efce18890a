-- expired_memory: the expired keys.
SELECT key FROM memory WHERE namespace = :namespace AND life = '' AND expires_at <= :before ORDER BY key LIMIT :limit;
