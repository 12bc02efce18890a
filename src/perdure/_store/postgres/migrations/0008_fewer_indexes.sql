-- 0008_fewer_indexes: earlier tasks of an id have an index of their own, so that a new task updates one index less.

DROP INDEX perdure.tasks_by_id;
CREATE INDEX tasks_past ON perdure.tasks (namespace, id, uid) WHERE NOT is_current;
