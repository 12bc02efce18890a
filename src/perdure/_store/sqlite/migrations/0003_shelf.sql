-- 0003_shelf: named values beside tasks (schedules, triggers, frames), and the events that handlers have received.

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

-- The signals sent for an event; a signal that is sent again for the same event is stored once.
ALTER TABLE signals ADD COLUMN once TEXT;
