-- 0005_memory: the values of the layers of a model's memory, by key.

CREATE TABLE memory (
  namespace  TEXT NOT NULL,
  life       TEXT NOT NULL,
  key        TEXT NOT NULL,
  owner      TEXT NOT NULL,
  version    INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  expires_at INTEGER,
  value      BLOB NOT NULL,
  PRIMARY KEY (namespace, life, key)
);
CREATE INDEX memory_by_owner ON memory (namespace, owner) WHERE owner <> '';
CREATE INDEX memory_expiring ON memory (expires_at) WHERE expires_at IS NOT NULL;
