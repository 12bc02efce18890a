-- 0017_hidden: tasks that are parts of another are left out of lists, counts and changes. `hidden` stands before the
-- order of each index, so that no list walks past hidden tasks.

ALTER TABLE perdure.tasks ADD COLUMN hidden BIGINT NOT NULL DEFAULT 0;
CREATE INDEX tasks_shown ON perdure.tasks (namespace, status, hidden, uid) INCLUDE (pause_reason)
  WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_shown_archived ON perdure.tasks (namespace, status, hidden, uid)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_moved_archived ON perdure.tasks (namespace, status, hidden, updated_at, uid)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_moved ON perdure.tasks (namespace, status, hidden, updated_at, uid)
  WHERE is_current AND archived_at IS NULL;
