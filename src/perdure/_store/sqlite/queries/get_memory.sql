-- get_memory: the value under a key, with its version. `life` is the uid of an earlier task that had the same id.
SELECT version, at, expires_at, value FROM memory WHERE namespace = :namespace AND life = :life AND key = :key;
