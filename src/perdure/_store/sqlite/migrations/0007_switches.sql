-- 0007_switches: who has stopped which task, or all of a namespace (id ''), from outside.

CREATE TABLE switches (
  namespace TEXT NOT NULL,
  id        TEXT NOT NULL,
  is_on     INTEGER NOT NULL,
  why       TEXT NOT NULL,
  at        INTEGER NOT NULL,
  author    TEXT NOT NULL,
  PRIMARY KEY (namespace, id)
) WITHOUT ROWID;
