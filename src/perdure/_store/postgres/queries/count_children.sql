-- count_children: for each of these tasks, count its children, and those that have not ended.
SELECT calls.parent_uid, count(*), count(*) FILTER (WHERE tasks.status IN ('pending', 'running', 'paused'))
FROM perdure.calls JOIN perdure.tasks ON tasks.uid = calls.task_uid
WHERE calls.parent_uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::text::json)))
GROUP BY calls.parent_uid;
