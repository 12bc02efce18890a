-- inbox_tasks: tasks that are paused for a person by themselves and not for a question of their function, the soonest
-- to be looked at first, then the longest unchanged; after a place in that order. `number` is that of the event that
-- paused the task: it tells this pause from the others of the task.
SELECT tasks.uid, tasks.id, tasks.pause_reason, tasks.pause, tasks.due_at, tasks.updated_at, calls.function,
       latest.host, latest.pid,
       (SELECT number FROM perdure.events WHERE task_uid = tasks.uid AND kind = 'paused' ORDER BY number DESC LIMIT 1) AS number
FROM perdure.tasks LEFT JOIN perdure.calls ON calls.task_uid = tasks.uid
     LEFT JOIN perdure.attempts AS latest ON latest.task_uid = tasks.uid
       AND latest.number = (SELECT max(number) FROM perdure.attempts WHERE task_uid = tasks.uid)
WHERE
--> asking_task
  AND (COALESCE(tasks.due_at, 9007199254740991), tasks.updated_at, tasks.uid) > (%(expires)s::bigint, %(asked)s::bigint, %(uid)s::text)
  AND (%(only)s::text IS NULL OR tasks.uid = %(only)s::text) AND strpos(%(reasons)s::text, tasks.pause_reason) > 0
ORDER BY COALESCE(tasks.due_at, 9007199254740991), tasks.updated_at, tasks.uid LIMIT %(limit)s::bigint;
