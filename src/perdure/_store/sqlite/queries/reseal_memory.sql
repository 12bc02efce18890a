-- reseal_memory: seal a value with another key. `uid` is the namespace.
UPDATE memory SET value = :value
WHERE namespace = :uid AND life = :life AND key = :key AND value = :old_value
RETURNING version;
