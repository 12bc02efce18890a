-- 0004_pauses: pauses that end by themselves: when another task ends, and when a provider's rate limit is over.

CREATE INDEX pauses_on_tasks ON pauses (topic) WHERE answer IS NULL AND topic IS NOT NULL;

CREATE TABLE rate_limits (
  namespace TEXT NOT NULL,
  provider  TEXT NOT NULL,
  hits      INTEGER NOT NULL,
  streak    INTEGER NOT NULL,
  reset_at  INTEGER,
  hit_at    INTEGER NOT NULL,
  PRIMARY KEY (namespace, provider)
) WITHOUT ROWID;
