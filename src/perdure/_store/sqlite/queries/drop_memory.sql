-- drop_memory: nothing is kept under this key any more. `before`, if given, spares what expires later, or never.
DELETE FROM memory
WHERE namespace = :namespace AND life = '' AND key = :key AND (:before IS NULL OR expires_at <= :before)
RETURNING version;
