-- 0004_pauses: pauses that end by themselves: when another task ends, and when a provider's rate limit is over.

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
