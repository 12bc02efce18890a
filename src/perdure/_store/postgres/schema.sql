-- The whole schema, for reading; a test shows that the migrations make exactly this.
-- Moments are milliseconds since 1970 (UTC), lengths of time end in _ms, payloads are sealed envelopes.
-- Columns that are searched or sorted are COLLATE "C": the order of their bytes, the same on every server.

CREATE SCHEMA perdure;

CREATE TABLE perdure.migrations (
  name TEXT COLLATE "C" PRIMARY KEY,
  at   BIGINT NOT NULL
);

CREATE TABLE perdure.tasks (
  uid          TEXT COLLATE "C" PRIMARY KEY,
  namespace    TEXT COLLATE "C" NOT NULL,
  id           TEXT COLLATE "C" NOT NULL,
  is_current   BOOLEAN NOT NULL DEFAULT true,
  status       TEXT COLLATE "C" NOT NULL,
  version      BIGINT NOT NULL DEFAULT 1,
  line         BIGINT NOT NULL DEFAULT 1,
  seq          BIGINT NOT NULL DEFAULT 0,
  state_seq    BIGINT NOT NULL DEFAULT 0,
  name         TEXT NOT NULL,
  description  TEXT NOT NULL,
  agent        TEXT COLLATE "C" NOT NULL,
  -- One row whose tags are no JSON would fail every listing that passes it.
  tags         TEXT NOT NULL CHECK (tags::jsonb IS NOT NULL),
  config       BYTEA,
  depends_on   TEXT NOT NULL,
  pause_reason TEXT COLLATE "C",
  pause        BYTEA,
  due_at       BIGINT,
  progress     BYTEA,
  result       BYTEA,
  error        BYTEA,
  attempts     BIGINT NOT NULL DEFAULT 0,
  event_count  BIGINT NOT NULL,
  event_head   BYTEA NOT NULL,
  created_at   BIGINT NOT NULL,
  started_at   BIGINT,
  updated_at   BIGINT NOT NULL,
  finished_at  BIGINT,
  archived_at  BIGINT,
  hidden       BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX tasks_current ON perdure.tasks (namespace, id) WHERE is_current;
CREATE INDEX tasks_past ON perdure.tasks (namespace, id, uid) WHERE NOT is_current;
-- Only current tasks, so that the planner cannot prefer this index when a verb looks a task up by its uid.
CREATE INDEX tasks_shown ON perdure.tasks (namespace, status, hidden, uid) INCLUDE (pause_reason)
  WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_shown_archived ON perdure.tasks (namespace, status, hidden, uid)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_moved_archived ON perdure.tasks (namespace, status, hidden, updated_at, uid)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_moved ON perdure.tasks (namespace, status, hidden, updated_at, uid)
  WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_by_agent ON perdure.tasks (namespace, agent, uid) WHERE agent <> '';
CREATE INDEX tasks_due ON perdure.tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tasks_asking ON perdure.tasks (namespace, COALESCE(due_at, 9007199254740991), updated_at, uid)
  WHERE status = 'paused' AND pause_reason IN ('human_approval', 'human_input');

CREATE TABLE perdure.checkpoints (
  task_uid     TEXT COLLATE "C" NOT NULL,
  seq          BIGINT NOT NULL,
  line         BIGINT NOT NULL,
  parent       BIGINT,
  base         BIGINT,
  at           BIGINT NOT NULL,
  label        TEXT NOT NULL,
  cause        TEXT NOT NULL,
  depth        BIGINT NOT NULL,
  author       TEXT NOT NULL,
  size         BIGINT NOT NULL,
  stored       BIGINT NOT NULL,
  chain_size   BIGINT NOT NULL,
  chain_length BIGINT NOT NULL,
  position     BIGINT NOT NULL DEFAULT 0,
  valid        BOOLEAN NOT NULL DEFAULT true,
  superseded   BOOLEAN NOT NULL DEFAULT false,
  pinned       BOOLEAN NOT NULL DEFAULT false,
  chunks       BIGINT NOT NULL DEFAULT 0,
  frame        BYTEA NOT NULL,
  PRIMARY KEY (task_uid, seq)
);

CREATE TABLE perdure.chunks (
  task_uid TEXT COLLATE "C" NOT NULL,
  owner    TEXT COLLATE "C" NOT NULL,
  n        BIGINT NOT NULL,
  body     BYTEA NOT NULL,
  PRIMARY KEY (task_uid, owner, n)
);

CREATE TABLE perdure.leases (
  task_uid TEXT COLLATE "C" PRIMARY KEY,
  epoch    BIGINT NOT NULL,
  worker   TEXT COLLATE "C",
  taken_at BIGINT
);
CREATE INDEX leases_by_worker ON perdure.leases (worker) WHERE worker IS NOT NULL;

CREATE TABLE perdure.workers (
  id         TEXT COLLATE "C" PRIMARY KEY,
  beats      BIGINT NOT NULL DEFAULT 0,
  host       TEXT NOT NULL,
  boot_id    TEXT NOT NULL,
  pid_ns     TEXT NOT NULL,
  pid        BIGINT NOT NULL,
  pid_start  BIGINT NOT NULL,
  "user"     TEXT NOT NULL,
  lease_ms   BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  knows      TEXT NOT NULL DEFAULT '',
  wish       TEXT NOT NULL DEFAULT ''
);

CREATE TABLE perdure.attempts (
  task_uid   TEXT COLLATE "C" NOT NULL,
  number     BIGINT NOT NULL,
  worker     TEXT COLLATE "C" NOT NULL,
  host       TEXT NOT NULL,
  pid        BIGINT NOT NULL,
  "user"     TEXT NOT NULL,
  agent      TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  ended_at   BIGINT,
  ended      TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (task_uid, number)
);

CREATE TABLE perdure.events (
  task_uid TEXT COLLATE "C" NOT NULL,
  number   BIGINT NOT NULL,
  at       BIGINT NOT NULL,
  kind     TEXT NOT NULL,
  author   TEXT NOT NULL,
  body     BYTEA NOT NULL,
  digest   BYTEA NOT NULL,
  hash     BYTEA NOT NULL,
  PRIMARY KEY (task_uid, number)
);

-- Without a second index: a step costs one row and one index entry.
CREATE TABLE perdure.journal (
  task_uid TEXT COLLATE "C" NOT NULL,
  line     BIGINT NOT NULL,
  position BIGINT NOT NULL,
  entry    BYTEA NOT NULL,
  PRIMARY KEY (task_uid, line, position)
);

CREATE TABLE perdure.tombstones (
  uid         TEXT COLLATE "C" PRIMARY KEY,
  namespace   TEXT COLLATE "C" NOT NULL,
  id          TEXT COLLATE "C" NOT NULL,
  status      TEXT COLLATE "C" NOT NULL,
  event_count BIGINT NOT NULL,
  event_head  BYTEA NOT NULL,
  created_at  BIGINT NOT NULL,
  deleted_at  BIGINT NOT NULL,
  author      TEXT NOT NULL
);

-- The newest batch of each process that writes: after a connection is lost at COMMIT, it tells if that batch was
-- committed.
CREATE TABLE perdure.committers (
  id    TEXT COLLATE "C" PRIMARY KEY,
  batch BIGINT NOT NULL,
  at    BIGINT NOT NULL,
  answer TEXT  -- of a batch that is one write: the row it answered, a JSON list
);
CREATE INDEX tombstones_deleted ON perdure.tombstones (namespace, deleted_at, uid);

CREATE TABLE perdure.calls (
  task_uid   TEXT COLLATE "C" PRIMARY KEY,
  function   TEXT COLLATE "C" NOT NULL,
  version    BIGINT NOT NULL,
  arguments  BYTEA NOT NULL,
  queue      TEXT COLLATE "C" NOT NULL,
  priority   BIGINT NOT NULL,
  parent_uid TEXT COLLATE "C",
  budget     BYTEA,
  key        TEXT COLLATE "C" NOT NULL DEFAULT '',
  not_before BIGINT,
  deadline_at BIGINT,
  losses     BIGINT NOT NULL DEFAULT 0,
  lost_position BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX calls_by_deadline ON perdure.calls (deadline_at) WHERE deadline_at IS NOT NULL;
CREATE INDEX calls_by_parent ON perdure.calls (parent_uid) WHERE parent_uid IS NOT NULL;
CREATE INDEX calls_by_function ON perdure.calls (function, task_uid);

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
  expires_at  BIGINT,
  PRIMARY KEY (task_uid, path)
);
CREATE INDEX pauses_due ON perdure.pauses (due_at) WHERE answer IS NULL AND due_at IS NOT NULL;
CREATE INDEX pauses_on_tasks ON perdure.pauses (topic) WHERE answer IS NULL AND topic IS NOT NULL;
CREATE INDEX pauses_open ON perdure.pauses (COALESCE(expires_at, 9007199254740991), asked_at, task_uid, path)
  WHERE answer IS NULL AND reason IN ('human_approval', 'human_input');

CREATE TABLE perdure.signals (
  task_uid TEXT COLLATE "C" NOT NULL,
  name     TEXT COLLATE "C" NOT NULL,
  number   BIGINT NOT NULL,
  value    BYTEA NOT NULL,
  sent_at  BIGINT NOT NULL,
  sent_by  TEXT NOT NULL,
  taken_by TEXT COLLATE "C",
  once     TEXT COLLATE "C",
  PRIMARY KEY (task_uid, name, number)
);

-- Values with a name and a version, kept for a task (its uid) or for a namespace ("namespace:…").
CREATE TABLE perdure.shelf (
  owner      TEXT COLLATE "C" NOT NULL,
  kind       TEXT COLLATE "C" NOT NULL,
  key        TEXT COLLATE "C" NOT NULL,
  version    BIGINT NOT NULL,
  due_at     BIGINT,
  changed_at BIGINT NOT NULL,
  author     TEXT NOT NULL,
  value      BYTEA NOT NULL,
  PRIMARY KEY (owner, kind, key)
);
CREATE INDEX shelf_due ON perdure.shelf (owner, kind, due_at) WHERE due_at IS NOT NULL;

-- The number of a task's events that each handler has received.
CREATE TABLE perdure.deliveries (
  task_uid  TEXT COLLATE "C" NOT NULL,
  handler   TEXT COLLATE "C" NOT NULL,
  delivered BIGINT NOT NULL,
  PRIMARY KEY (task_uid, handler)
);
CREATE INDEX tasks_finished ON perdure.tasks (namespace, finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE perdure.rate_limits (
  namespace TEXT COLLATE "C" NOT NULL,
  provider  TEXT COLLATE "C" NOT NULL,
  hits      BIGINT NOT NULL,
  streak    BIGINT NOT NULL,
  reset_at  BIGINT,
  hit_at    BIGINT NOT NULL,
  PRIMARY KEY (namespace, provider)
);

-- The values that layers of a model's memory keep. `owner` is the task that a value belongs to, or ''. `life` is '', or
-- the uid of an earlier task whose id now belongs to another task.
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

-- The slots of limits: a slot is taken while its task's lease has the same holder or, with `until`, until that moment.
CREATE TABLE perdure.slots (
  scope    TEXT COLLATE "C" NOT NULL,
  n        BIGINT NOT NULL,
  task_uid TEXT COLLATE "C" NOT NULL,
  epoch    BIGINT NOT NULL,
  worker   TEXT COLLATE "C" NOT NULL,
  until    BIGINT NOT NULL,
  PRIMARY KEY (scope, n)
);

CREATE TABLE perdure.switches (
  namespace TEXT COLLATE "C" NOT NULL,
  id        TEXT COLLATE "C" NOT NULL,
  is_on     BOOLEAN NOT NULL,
  why       TEXT NOT NULL,
  at        BIGINT NOT NULL,
  author    TEXT NOT NULL,
  PRIMARY KEY (namespace, id)
);

-- The last position of each journal, stored apart from its entries, so that missing entries at its end are noticed.
CREATE TABLE perdure.journal_ends (
  task_uid TEXT COLLATE "C" PRIMARY KEY,
  line     BIGINT NOT NULL,
  position BIGINT NOT NULL
) WITH (fillfactor = 50);

-- The receivers of events. The record is sealed: address, secrets, wanted events. `worker` is the process that sends.
CREATE TABLE perdure.webhooks (
  namespace     TEXT COLLATE "C" NOT NULL,
  id            TEXT COLLATE "C" NOT NULL,
  version       BIGINT NOT NULL,
  changed_at    BIGINT NOT NULL,
  author        TEXT NOT NULL,
  record        BYTEA NOT NULL,
  worker        TEXT COLLATE "C" NOT NULL DEFAULT '',
  failing_since BIGINT,
  PRIMARY KEY (namespace, id)
);

-- One message to one webhook. It is due at `due_at`, or never (NULL). Its id begins with the moment of its event.
CREATE TABLE perdure.hook_deliveries (
  id        TEXT COLLATE "C" PRIMARY KEY,
  namespace TEXT COLLATE "C" NOT NULL,
  webhook   TEXT COLLATE "C" NOT NULL,
  task_uid  TEXT COLLATE "C" NOT NULL,
  number    BIGINT NOT NULL,
  event     TEXT NOT NULL,
  made_at   BIGINT NOT NULL,
  due_at    BIGINT,
  tries     BIGINT NOT NULL,
  state     TEXT NOT NULL,
  status    BIGINT,
  sent_at   BIGINT,
  took_ms   BIGINT,
  body      BYTEA NOT NULL,
  answer    BYTEA
);
CREATE INDEX hook_deliveries_due ON perdure.hook_deliveries (namespace, webhook, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX hook_deliveries_listed ON perdure.hook_deliveries (namespace, webhook, id);
