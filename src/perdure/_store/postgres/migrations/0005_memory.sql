-- 0005_memory: the values of the layers of a model's memory, by key.

CREATE TABLE perdure.memory (
  namespace  TEXT COLLATE "C" NOT NULL,
  life       TEXT COLLATE "C" NOT NULL,
  key        TEXT COLLATE "C" NOT NULL,
  owner      TEXT COLLATE "C" NOT NULL,
  version    BIGINT NOT NULL,
  at         BIGINT NOT NULL,
  expires_at BIGINT,
  value      BYTEA NOT NULL,
  PRIMARY KEY (namespace, life, key)
);
CREATE INDEX memory_by_owner ON perdure.memory (namespace, owner) WHERE owner <> '';
CREATE INDEX memory_expiring ON perdure.memory (expires_at) WHERE expires_at IS NOT NULL;
