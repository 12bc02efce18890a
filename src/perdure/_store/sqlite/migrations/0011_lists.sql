-- 0011_lists: indexes for pages, counts and changes of tasks, so that none of these sorts or reads all tasks.
-- The columns of each condition are in its index too; without them SQLite reads the row to check it.

CREATE INDEX tasks_listed ON tasks (namespace, status, uid, pause_reason, is_current, archived_at)
  WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_archived ON tasks (namespace, status, uid, is_current, archived_at)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_archived_changed ON tasks (namespace, status, updated_at, uid, is_current, archived_at)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_changed ON tasks (namespace, status, updated_at, uid, is_current, archived_at)
  WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_by_agent ON tasks (namespace, agent, uid) WHERE agent <> '';
CREATE INDEX calls_by_function ON calls (function, task_uid);
CREATE INDEX tombstones_deleted ON tombstones (namespace, deleted_at, uid);
