-- get_memory: what is kept under a key, with its version; of a former life by its uid.
SELECT version, at, expires_at, value FROM memory WHERE namespace = :namespace AND life = :life AND key = :key;
