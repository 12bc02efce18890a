-- 0007_switches: tasks that an operator has stopped from outside, or whole namespaces (id '').

CREATE TABLE perdure.switches (
  namespace TEXT COLLATE "C" NOT NULL,
  id        TEXT COLLATE "C" NOT NULL,
  is_on     BOOLEAN NOT NULL,
  why       TEXT NOT NULL,
  at        BIGINT NOT NULL,
  author    TEXT NOT NULL,
  PRIMARY KEY (namespace, id)
);
