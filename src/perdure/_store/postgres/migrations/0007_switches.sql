-- 0007_switches: who has stopped which task, or all of a namespace (id ''), from outside.

CREATE TABLE perdure.switches (
  namespace TEXT COLLATE "C" NOT NULL,
  id        TEXT COLLATE "C" NOT NULL,
  is_on     BOOLEAN NOT NULL,
  why       TEXT NOT NULL,
  at        BIGINT NOT NULL,
  author    TEXT NOT NULL,
  PRIMARY KEY (namespace, id)
);
