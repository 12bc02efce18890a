-- 0011_lists: what pages, counts and changes of tasks are read from, so that none of them sorts or reads all tasks.

CREATE INDEX tasks_listed ON tasks (namespace, status, uid, pause_reason) WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_archived ON tasks (namespace, status, uid) WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_archived_changed ON tasks (namespace, status, updated_at, uid)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_changed ON tasks (namespace, status, updated_at, uid) WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_by_agent ON tasks (namespace, agent, uid) WHERE agent <> '';
CREATE INDEX calls_by_function ON calls (function, task_uid);
CREATE INDEX tombstones_deleted ON tombstones (namespace, deleted_at, uid);
