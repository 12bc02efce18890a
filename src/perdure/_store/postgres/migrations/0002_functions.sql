-- 0002_functions: the durable function that a task carries out, the questions it is paused on, its signals.

CREATE TABLE perdure.calls (
  task_uid   TEXT COLLATE "C" PRIMARY KEY,
  function   TEXT COLLATE "C" NOT NULL,
  version    BIGINT NOT NULL,
  arguments  BYTEA NOT NULL,
  queue      TEXT COLLATE "C" NOT NULL,
  priority   BIGINT NOT NULL,
  parent_uid TEXT COLLATE "C",
  budget     BYTEA
);
CREATE INDEX calls_by_function ON perdure.calls (queue, function, version, priority, task_uid);
CREATE INDEX calls_by_parent ON perdure.calls (parent_uid) WHERE parent_uid IS NOT NULL;

CREATE TABLE perdure.pauses (
  task_uid    TEXT COLLATE "C" NOT NULL,
  path        TEXT COLLATE "C" NOT NULL,
  reason      TEXT NOT NULL,
  topic       TEXT COLLATE "C",
  question    BYTEA NOT NULL,
  asked_at    BIGINT NOT NULL,
  due_at      BIGINT,
  answer      BYTEA,
  answered_at BIGINT,
  answered_by TEXT,
  PRIMARY KEY (task_uid, path)
);
CREATE INDEX pauses_due ON perdure.pauses (due_at) WHERE answer IS NULL AND due_at IS NOT NULL;

CREATE TABLE perdure.signals (
  task_uid TEXT COLLATE "C" NOT NULL,
  name     TEXT COLLATE "C" NOT NULL,
  number   BIGINT NOT NULL,
  value    BYTEA NOT NULL,
  sent_at  BIGINT NOT NULL,
  sent_by  TEXT NOT NULL,
  taken_by TEXT COLLATE "C",
  PRIMARY KEY (task_uid, name, number)
);
