-- 0017_hidden: tasks that are parts of another are left out of lists, counts and changes. `hidden` stands before the
-- order of each index, so that no list walks past hidden tasks.

ALTER TABLE tasks ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tasks_shown ON tasks (namespace, status, hidden, uid, pause_reason, is_current, archived_at)
  WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_shown_archived ON tasks (namespace, status, hidden, uid, is_current, archived_at)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_moved_archived ON tasks (namespace, status, hidden, updated_at, uid, is_current, archived_at)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_moved ON tasks (namespace, status, hidden, updated_at, uid, is_current, archived_at)
  WHERE is_current AND archived_at IS NULL;
