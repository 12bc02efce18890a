-- children_of: the tasks that one task has started, oldest first.
SELECT child.uid, child.id, child.status
FROM perdure.calls JOIN perdure.tasks AS child ON child.uid = calls.task_uid
WHERE calls.parent_uid = %(uid)s::text
ORDER BY child.uid;
