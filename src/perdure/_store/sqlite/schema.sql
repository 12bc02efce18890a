-- The whole schema, for reading; a test shows that the migrations make exactly this.
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
  archived_at  INTEGER,
  hidden       INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE UNIQUE INDEX tasks_current ON tasks (namespace, id) WHERE is_current;
CREATE INDEX tasks_past ON tasks (namespace, id, uid) WHERE NOT is_current;
CREATE INDEX tasks_shown ON tasks (namespace, status, hidden, uid, pause_reason, is_current, archived_at)
  WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_shown_archived ON tasks (namespace, status, hidden, uid, is_current, archived_at)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_moved_archived ON tasks (namespace, status, hidden, updated_at, uid, is_current, archived_at)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_moved ON tasks (namespace, status, hidden, updated_at, uid, is_current, archived_at)
  WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_by_agent ON tasks (namespace, agent, uid) WHERE agent <> '';
CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tasks_asking ON tasks (namespace, COALESCE(due_at, 9007199254740991), updated_at, uid)
  WHERE status = 'paused' AND pause_reason IN ('human_approval', 'human_input');

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
  started_at INTEGER NOT NULL,
  knows      TEXT NOT NULL DEFAULT '',
  wish       TEXT NOT NULL DEFAULT ''
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
CREATE INDEX tombstones_deleted ON tombstones (namespace, deleted_at, uid);

CREATE TABLE calls (
  task_uid   TEXT PRIMARY KEY,
  function   TEXT NOT NULL,
  version    INTEGER NOT NULL,
  arguments  BLOB NOT NULL,
  queue      TEXT NOT NULL,
  priority   INTEGER NOT NULL,
  parent_uid TEXT,
  budget     BLOB,
  key        TEXT NOT NULL DEFAULT '',
  not_before INTEGER,
  deadline_at INTEGER,
  losses     INTEGER NOT NULL DEFAULT 0,
  lost_position INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX calls_by_deadline ON calls (deadline_at) WHERE deadline_at IS NOT NULL;
CREATE INDEX calls_by_parent ON calls (parent_uid) WHERE parent_uid IS NOT NULL;
CREATE INDEX calls_by_function ON calls (function, task_uid);

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
  expires_at  INTEGER,
  PRIMARY KEY (task_uid, path)
) WITHOUT ROWID;
CREATE INDEX pauses_due ON pauses (due_at) WHERE answer IS NULL AND due_at IS NOT NULL;
CREATE INDEX pauses_on_tasks ON pauses (topic) WHERE answer IS NULL AND topic IS NOT NULL;
CREATE INDEX pauses_open ON pauses (COALESCE(expires_at, 9007199254740991), asked_at, task_uid, path)
  WHERE answer IS NULL AND reason IN ('human_approval', 'human_input');

CREATE TABLE signals (
  task_uid TEXT NOT NULL,
  name     TEXT NOT NULL,
  number   INTEGER NOT NULL,
  value    BLOB NOT NULL,
  sent_at  INTEGER NOT NULL,
  sent_by  TEXT NOT NULL,
  taken_by TEXT,
  once     TEXT,
  PRIMARY KEY (task_uid, name, number)
) WITHOUT ROWID;

-- Values with a name and a version, kept for a task (its uid) or for a namespace ("namespace:…").
CREATE TABLE shelf (
  owner      TEXT NOT NULL,
  kind       TEXT NOT NULL,
  key        TEXT NOT NULL,
  version    INTEGER NOT NULL,
  due_at     INTEGER,
  changed_at INTEGER NOT NULL,
  author     TEXT NOT NULL,
  value      BLOB NOT NULL,
  PRIMARY KEY (owner, kind, key)
) WITHOUT ROWID;
CREATE INDEX shelf_due ON shelf (owner, kind, due_at) WHERE due_at IS NOT NULL;

-- The number of a task's events that each handler has received.
CREATE TABLE deliveries (
  task_uid  TEXT NOT NULL,
  handler   TEXT NOT NULL,
  delivered INTEGER NOT NULL,
  PRIMARY KEY (task_uid, handler)
) WITHOUT ROWID;
CREATE INDEX tasks_finished ON tasks (namespace, finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE rate_limits (
  namespace TEXT NOT NULL,
  provider  TEXT NOT NULL,
  hits      INTEGER NOT NULL,
  streak    INTEGER NOT NULL,
  reset_at  INTEGER,
  hit_at    INTEGER NOT NULL,
  PRIMARY KEY (namespace, provider)
) WITHOUT ROWID;

-- The values that layers of a model's memory keep. `owner` is the task that a value belongs to, or ''. `life` is '', or
-- the uid of an earlier task whose id now belongs to another task.
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

-- The slots of limits: a slot is taken while its task's lease has the same holder or, with `until`, until that moment.
CREATE TABLE slots (
  scope    TEXT NOT NULL,
  n        INTEGER NOT NULL,
  task_uid TEXT NOT NULL,
  epoch    INTEGER NOT NULL,
  worker   TEXT NOT NULL,
  until    INTEGER NOT NULL,
  PRIMARY KEY (scope, n)
) WITHOUT ROWID;

CREATE TABLE switches (
  namespace TEXT NOT NULL,
  id        TEXT NOT NULL,
  is_on     INTEGER NOT NULL,
  why       TEXT NOT NULL,
  at        INTEGER NOT NULL,
  author    TEXT NOT NULL,
  PRIMARY KEY (namespace, id)
) WITHOUT ROWID;

-- The last position of each journal, stored apart from its entries, so that missing entries at its end are noticed.
CREATE TABLE journal_ends (
  task_uid TEXT PRIMARY KEY,
  line     INTEGER NOT NULL,
  position INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TRIGGER journal_end AFTER INSERT ON journal BEGIN
  INSERT INTO journal_ends (task_uid, line, position) VALUES (NEW.task_uid, NEW.line, NEW.position)
  ON CONFLICT (task_uid) DO UPDATE SET line = excluded.line, position = excluded.position
  WHERE (excluded.line, excluded.position) > (journal_ends.line, journal_ends.position); END;

-- The receivers of events. The record is sealed: address, secrets, wanted events. `worker` is the process that sends.
CREATE TABLE webhooks (
  namespace     TEXT NOT NULL,
  id            TEXT NOT NULL,
  version       INTEGER NOT NULL,
  changed_at    INTEGER NOT NULL,
  author        TEXT NOT NULL,
  record        BLOB NOT NULL,
  worker        TEXT NOT NULL DEFAULT '',
  failing_since INTEGER,
  PRIMARY KEY (namespace, id)
) WITHOUT ROWID;

-- One message to one webhook. It is due at `due_at`, or never (NULL). Its id begins with the moment of its event.
CREATE TABLE hook_deliveries (
  id        TEXT PRIMARY KEY,
  namespace TEXT NOT NULL,
  webhook   TEXT NOT NULL,
  task_uid  TEXT NOT NULL,
  number    INTEGER NOT NULL,
  event     TEXT NOT NULL,
  made_at   INTEGER NOT NULL,
  due_at    INTEGER,
  tries     INTEGER NOT NULL,
  state     TEXT NOT NULL,
  status    INTEGER,
  sent_at   INTEGER,
  took_ms   INTEGER,
  body      BLOB NOT NULL,
  answer    BLOB
) WITHOUT ROWID;
CREATE INDEX hook_deliveries_due ON hook_deliveries (namespace, webhook, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX hook_deliveries_listed ON hook_deliveries (namespace, webhook, id);
