-- 0001_first: tasks, their checkpoints, leases, attempts, events and journal; the batches of committers.
-- The process that runs the first migration also makes the schema itself and perdure.migrations.

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
  archived_at  BIGINT
);
CREATE UNIQUE INDEX tasks_current ON perdure.tasks (namespace, id) WHERE is_current;
CREATE INDEX tasks_by_id ON perdure.tasks (namespace, id, uid);
-- Only current tasks, so that the planner cannot prefer this index when a verb looks a task up by its uid.
CREATE INDEX tasks_by_status ON perdure.tasks (namespace, status, uid) WHERE is_current;
CREATE INDEX tasks_due ON perdure.tasks (due_at) WHERE due_at IS NOT NULL;

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
  started_at BIGINT NOT NULL
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
  at    BIGINT NOT NULL
);
