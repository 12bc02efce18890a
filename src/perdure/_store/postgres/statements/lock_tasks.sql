-- lock_tasks: lock the tasks that a batch changes, in the order that every batch uses.
-- Nothing refers to a task by a foreign key, so a delete needs no stronger lock than this one.
SELECT 1 FROM perdure.tasks WHERE uid = ANY (%(ids)s::text[]) ORDER BY namespace, id, uid FOR NO KEY UPDATE;
