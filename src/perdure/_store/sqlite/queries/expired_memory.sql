-- expired_memory: the keys whose time is over.
SELECT key FROM memory WHERE namespace = :namespace AND life = '' AND expires_at <= :before ORDER BY key LIMIT :limit;
