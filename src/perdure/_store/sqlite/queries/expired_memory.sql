-- expired_memory: the keys whose values have expired.
SELECT key FROM memory WHERE namespace = :namespace AND life = '' AND expires_at <= :before ORDER BY key LIMIT :limit;
