-- count_inbox: count the open questions to people by kind, and the tasks that paused themselves by reason.
SELECT CASE WHEN topic = '~effect' THEN 'effect' WHEN reason = 'human_approval' THEN 'approval' ELSE 'input' END, count(*)
FROM perdure.pauses JOIN perdure.tasks ON tasks.uid = pauses.task_uid
WHERE answer IS NULL AND reason IN ('human_approval', 'human_input') AND tasks.namespace = %(namespace)s::text
  AND (tasks.status IN ('pending', 'running', 'paused') OR topic = '~effect')
GROUP BY 1
UNION ALL
SELECT tasks.pause_reason, count(*)
FROM perdure.tasks
WHERE
--> asking_task
GROUP BY tasks.pause_reason;
