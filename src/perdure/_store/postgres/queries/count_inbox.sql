-- count_inbox: how many open questions to people there are, by their kind; of tasks that are paused by themselves, by
-- their reason.
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
