-- 0016_webhooks: the receivers of events, and each message with the result of sending it.

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
