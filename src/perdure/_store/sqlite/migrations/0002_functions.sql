-- 0002_functions: the durable function that a task carries out, and the questions it is paused on.

CREATE TABLE calls (
  task_uid   TEXT PRIMARY KEY,
  function   TEXT NOT NULL,
  version    INTEGER NOT NULL,
  arguments  BLOB NOT NULL,
  queue      TEXT NOT NULL,
  priority   INTEGER NOT NULL,
  parent_uid TEXT,
  budget     BLOB
) WITHOUT ROWID;
CREATE INDEX calls_by_function ON calls (queue, function, version, priority, task_uid);
CREATE INDEX calls_by_parent ON calls (parent_uid) WHERE parent_uid IS NOT NULL;

CREATE TABLE pauses (
  task_uid    TEXT NOT NULL,
  path        TEXT NOT NULL,
  reason      TEXT NOT NULL,
  topic       TEXT,
  question    BLOB NOT NULL,
  asked_at    INTEGER NOT NULL,
  due_at      INTEGER,
  answer      BLOB,
  answered_at INTEGER,
  answered_by TEXT,
  PRIMARY KEY (task_uid, path)
) WITHOUT ROWID;
CREATE INDEX pauses_due ON pauses (due_at) WHERE answer IS NULL AND due_at IS NOT NULL;

CREATE TABLE signals (
  task_uid TEXT NOT NULL,
  name     TEXT NOT NULL,
  number   INTEGER NOT NULL,
  value    BLOB NOT NULL,
  sent_at  INTEGER NOT NULL,
  sent_by  TEXT NOT NULL,
  taken_by TEXT,
  PRIMARY KEY (task_uid, name, number)
) WITHOUT ROWID;
