-- count_children: for each of these tasks, count its children, and those that have not ended.
SELECT calls.parent_uid, count(*), sum(tasks.status IN ('pending', 'running', 'paused'))
FROM calls JOIN tasks ON tasks.uid = calls.task_uid
WHERE calls.parent_uid IN (SELECT value FROM json_each(:uids))
GROUP BY calls.parent_uid;
