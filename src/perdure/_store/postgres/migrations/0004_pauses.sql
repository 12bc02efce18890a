-- 0004_pauses: what makes a pause end by itself: another task, and what providers have said about their limits.

CREATE INDEX pauses_on_tasks ON perdure.pauses (topic) WHERE answer IS NULL AND topic IS NOT NULL;

CREATE TABLE perdure.rate_limits (
  namespace TEXT COLLATE "C" NOT NULL,
  provider  TEXT COLLATE "C" NOT NULL,
  hits      BIGINT NOT NULL,
  streak    BIGINT NOT NULL,
  reset_at  BIGINT,
  hit_at    BIGINT NOT NULL,
  PRIMARY KEY (namespace, provider)
);
