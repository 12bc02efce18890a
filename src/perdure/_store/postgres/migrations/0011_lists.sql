-- 0011_lists: indexes for pages, counts and changes of tasks, so that none of these sorts or reads all tasks.

CREATE INDEX tasks_listed ON perdure.tasks (namespace, status, uid) INCLUDE (pause_reason) WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_archived ON perdure.tasks (namespace, status, uid) WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_archived_changed ON perdure.tasks (namespace, status, updated_at, uid)
  WHERE is_current AND archived_at IS NOT NULL;
CREATE INDEX tasks_changed ON perdure.tasks (namespace, status, updated_at, uid) WHERE is_current AND archived_at IS NULL;
CREATE INDEX tasks_by_agent ON perdure.tasks (namespace, agent, uid) WHERE agent <> '';
CREATE INDEX calls_by_function ON perdure.calls (function, task_uid);
CREATE INDEX tombstones_deleted ON perdure.tombstones (namespace, deleted_at, uid);
