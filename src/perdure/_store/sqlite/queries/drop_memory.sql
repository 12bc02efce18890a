-- drop_memory: delete the value of a key. With `before`, only a value that expires before that moment.
DELETE FROM memory
WHERE namespace = :namespace AND life = '' AND key = :key AND (:before IS NULL OR expires_at <= :before)
RETURNING version;
