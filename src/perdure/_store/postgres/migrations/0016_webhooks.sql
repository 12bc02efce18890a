-- 0016_webhooks: the receivers of events, and each message with the result of sending it.

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
