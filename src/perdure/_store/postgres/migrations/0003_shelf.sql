-- 0003_shelf: named values beside tasks (schedules, triggers, frames), and the events that handlers have received.

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

-- The signals sent for an event; a signal that is sent again for the same event is stored once.
ALTER TABLE perdure.signals ADD COLUMN once TEXT COLLATE "C";
