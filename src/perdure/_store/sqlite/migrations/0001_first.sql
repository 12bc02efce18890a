-- 0001_first: tasks, their checkpoints, leases, attempts, events and journal.
-- Moments are milliseconds since 1970 (UTC), lengths of time end in _ms, payloads are sealed envelopes.

CREATE TABLE tasks (
  uid          TEXT PRIMARY KEY,
  namespace    TEXT NOT NULL,
  id           TEXT NOT NULL,
  is_current   INTEGER NOT NULL DEFAULT 1,
  status       TEXT NOT NULL,
  version      INTEGER NOT NULL DEFAULT 1,
  line         INTEGER NOT NULL DEFAULT 1,
  seq          INTEGER NOT NULL DEFAULT 0,
  state_seq    INTEGER NOT NULL DEFAULT 0,
  name         TEXT NOT NULL,
  description  TEXT NOT NULL,
  agent        TEXT NOT NULL,
  tags         TEXT NOT NULL,
  config       BLOB,
  depends_on   TEXT NOT NULL,
  pause_reason TEXT,
  pause        BLOB,
  due_at       INTEGER,
  progress     BLOB,
  result       BLOB,
  error        BLOB,
  attempts     INTEGER NOT NULL DEFAULT 0,
  event_count  INTEGER NOT NULL,
  event_head   BLOB NOT NULL,
  created_at   INTEGER NOT NULL,
  started_at   INTEGER,
  updated_at   INTEGER NOT NULL,
  finished_at  INTEGER,
  archived_at  INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX tasks_current ON tasks (namespace, id) WHERE is_current;
CREATE INDEX tasks_by_id ON tasks (namespace, id, uid);
CREATE INDEX tasks_by_status ON tasks (namespace, status, uid);
CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;

-- The frame is the last column, so that a listing does not read through it.
CREATE TABLE checkpoints (
  task_uid     TEXT NOT NULL,
  seq          INTEGER NOT NULL,
  line         INTEGER NOT NULL,
  parent       INTEGER,
  base         INTEGER,
  at           INTEGER NOT NULL,
  label        TEXT NOT NULL,
  cause        TEXT NOT NULL,
  depth        INTEGER NOT NULL,
  author       TEXT NOT NULL,
  size         INTEGER NOT NULL,
  stored       INTEGER NOT NULL,
  chain_size   INTEGER NOT NULL,
  chain_length INTEGER NOT NULL,
  position     INTEGER NOT NULL DEFAULT 0,
  valid        INTEGER NOT NULL DEFAULT 1,
  superseded   INTEGER NOT NULL DEFAULT 0,
  pinned       INTEGER NOT NULL DEFAULT 0,
  chunks       INTEGER NOT NULL DEFAULT 0,
  frame        BLOB NOT NULL,
  PRIMARY KEY (task_uid, seq)
);

CREATE TABLE chunks (
  task_uid TEXT NOT NULL,
  owner    TEXT NOT NULL,
  n        INTEGER NOT NULL,
  body     BLOB NOT NULL,
  PRIMARY KEY (task_uid, owner, n)
);

CREATE TABLE leases (
  task_uid TEXT PRIMARY KEY,
  epoch    INTEGER NOT NULL,
  worker   TEXT,
  taken_at INTEGER
) WITHOUT ROWID;
CREATE INDEX leases_by_worker ON leases (worker) WHERE worker IS NOT NULL;

CREATE TABLE workers (
  id         TEXT PRIMARY KEY,
  beats      INTEGER NOT NULL DEFAULT 0,
  host       TEXT NOT NULL,
  boot_id    TEXT NOT NULL,
  pid_ns     TEXT NOT NULL,
  pid        INTEGER NOT NULL,
  pid_start  INTEGER NOT NULL,
  user       TEXT NOT NULL,
  lease_ms   INTEGER NOT NULL,
  started_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE attempts (
  task_uid   TEXT NOT NULL,
  number     INTEGER NOT NULL,
  worker     TEXT NOT NULL,
  host       TEXT NOT NULL,
  pid        INTEGER NOT NULL,
  user       TEXT NOT NULL,
  agent      TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at   INTEGER,
  ended      TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (task_uid, number)
) WITHOUT ROWID;

CREATE TABLE events (
  task_uid TEXT NOT NULL,
  number   INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  kind     TEXT NOT NULL,
  author   TEXT NOT NULL,
  body     BLOB NOT NULL,
  digest   BLOB NOT NULL,
  hash     BLOB NOT NULL,
  PRIMARY KEY (task_uid, number)
) WITHOUT ROWID;

-- Clustered on its key and without a second index: a step costs one insert into one b-tree.
CREATE TABLE journal (
  task_uid TEXT NOT NULL,
  line     INTEGER NOT NULL,
  position INTEGER NOT NULL,
  entry    BLOB NOT NULL,
  PRIMARY KEY (task_uid, line, position)
) WITHOUT ROWID;

CREATE TABLE tombstones (
  uid         TEXT PRIMARY KEY,
  namespace   TEXT NOT NULL,
  id          TEXT NOT NULL,
  status      TEXT NOT NULL,
  event_count INTEGER NOT NULL,
  event_head  BLOB NOT NULL,
  created_at  INTEGER NOT NULL,
  deleted_at  INTEGER NOT NULL,
  author      TEXT NOT NULL
) WITHOUT ROWID;
