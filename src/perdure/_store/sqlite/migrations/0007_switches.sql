-- 0007_switches: tasks that an operator has stopped from outside, or whole namespaces (id '').

CREATE TABLE switches (
  namespace TEXT NOT NULL,
  id        TEXT NOT NULL,
  is_on     INTEGER NOT NULL,
  why       TEXT NOT NULL,
  at        INTEGER NOT NULL,
  author    TEXT NOT NULL,
  PRIMARY KEY (namespace, id)
) WITHOUT ROWID;
