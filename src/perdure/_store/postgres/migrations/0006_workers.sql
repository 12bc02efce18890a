-- 0006_workers: the announcements of workers and the requests to them, the turns of waiting calls, and the slots of
-- limits.

ALTER TABLE perdure.workers ADD COLUMN knows TEXT NOT NULL DEFAULT '';
ALTER TABLE perdure.workers ADD COLUMN wish TEXT NOT NULL DEFAULT '';

ALTER TABLE perdure.calls ADD COLUMN key TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE perdure.calls ADD COLUMN not_before BIGINT;
ALTER TABLE perdure.calls ADD COLUMN deadline_at BIGINT;
ALTER TABLE perdure.calls ADD COLUMN losses BIGINT NOT NULL DEFAULT 0;
ALTER TABLE perdure.calls ADD COLUMN lost_position BIGINT NOT NULL DEFAULT 0;
CREATE INDEX calls_by_deadline ON perdure.calls (deadline_at) WHERE deadline_at IS NOT NULL;
-- Claimable tasks are found among the unfinished tasks, which are few, rather than among all calls.
DROP INDEX perdure.calls_by_function;

CREATE TABLE perdure.slots (
  scope    TEXT COLLATE "C" NOT NULL,
  n        BIGINT NOT NULL,
  task_uid TEXT COLLATE "C" NOT NULL,
  epoch    BIGINT NOT NULL,
  worker   TEXT COLLATE "C" NOT NULL,
  until    BIGINT NOT NULL,
  PRIMARY KEY (scope, n)
);
