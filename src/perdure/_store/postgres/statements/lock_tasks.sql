-- lock_tasks: the tasks a batch changes, in the order every batch takes them.
-- Nothing refers to a task by a foreign key, so a delete needs no stronger lock than this one.
SELECT 1 FROM perdure.tasks WHERE uid = ANY (%(ids)s::text[]) ORDER BY namespace, id, uid FOR NO KEY UPDATE;
