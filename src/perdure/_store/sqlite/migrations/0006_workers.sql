-- 0006_workers: the announcements of workers and the requests to them, the turns of waiting calls, and the slots of
-- limits.

ALTER TABLE workers ADD COLUMN knows TEXT NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN wish TEXT NOT NULL DEFAULT '';

ALTER TABLE calls ADD COLUMN key TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN not_before INTEGER;
ALTER TABLE calls ADD COLUMN deadline_at INTEGER;
ALTER TABLE calls ADD COLUMN losses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN lost_position INTEGER NOT NULL DEFAULT 0;
CREATE INDEX calls_by_deadline ON calls (deadline_at) WHERE deadline_at IS NOT NULL;
-- Claimable tasks are found among the unfinished tasks, which are few, rather than among all calls.
DROP INDEX calls_by_function;

CREATE TABLE slots (
  scope    TEXT NOT NULL,
  n        INTEGER NOT NULL,
  task_uid TEXT NOT NULL,
  epoch    INTEGER NOT NULL,
  worker   TEXT NOT NULL,
  until    INTEGER NOT NULL,
  PRIMARY KEY (scope, n)
) WITHOUT ROWID;
