-- inbox_tasks: tasks that paused themselves for a person, without a question of their function, soonest due first, then
-- longest unchanged; the page begins after a place in that order. `number` is the number of the event that paused the
-- task; it tells this pause from the task's other pauses.
SELECT tasks.uid, tasks.id, tasks.pause_reason, tasks.pause, tasks.due_at, tasks.updated_at, calls.function,
       latest.host, latest.pid,
       (SELECT number FROM perdure.events WHERE task_uid = tasks.uid AND kind = 'paused' ORDER BY number DESC LIMIT 1) AS number,
       (SELECT parent.id FROM perdure.tasks AS parent WHERE tasks.hidden = 1 AND parent.uid = calls.parent_uid) AS part_of
FROM perdure.tasks LEFT JOIN perdure.calls ON calls.task_uid = tasks.uid
     LEFT JOIN perdure.attempts AS latest ON latest.task_uid = tasks.uid
       AND latest.number = (SELECT max(number) FROM perdure.attempts WHERE task_uid = tasks.uid)
WHERE
--> asking_task
  AND (COALESCE(tasks.due_at, 9007199254740991), tasks.updated_at, tasks.uid) > (%(expires)s::bigint, %(asked)s::bigint, %(uid)s::text)
  AND (%(only)s::text IS NULL OR tasks.uid = %(only)s::text OR (tasks.hidden = 1 AND calls.parent_uid = %(only)s::text)) AND strpos(%(reasons)s::text, tasks.pause_reason) > 0
ORDER BY COALESCE(tasks.due_at, 9007199254740991), tasks.updated_at, tasks.uid LIMIT %(limit)s::bigint;
