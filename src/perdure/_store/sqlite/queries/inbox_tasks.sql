-- inbox_tasks: tasks that paused themselves for a person, without a question of their function, soonest due first, then
-- longest unchanged; the page begins after a place in that order. `number` is the number of the event that paused the
-- task; it tells this pause from the task's other pauses.
SELECT tasks.uid, tasks.id, tasks.pause_reason, tasks.pause, tasks.due_at, tasks.updated_at, calls.function,
       latest.host, latest.pid,
       (SELECT number FROM events WHERE task_uid = tasks.uid AND kind = 'paused' ORDER BY number DESC LIMIT 1) AS number,
       (SELECT parent.id FROM tasks AS parent WHERE tasks.hidden = 1 AND parent.uid = calls.parent_uid) AS part_of
FROM tasks INDEXED BY tasks_asking LEFT JOIN calls ON calls.task_uid = tasks.uid
     LEFT JOIN attempts AS latest ON latest.task_uid = tasks.uid
       AND latest.number = (SELECT max(number) FROM attempts WHERE task_uid = tasks.uid)
WHERE
--> asking_task
  AND (COALESCE(tasks.due_at, 9007199254740991), tasks.updated_at, tasks.uid) > (:expires, :asked, :uid)
  AND (:only IS NULL OR tasks.uid = :only OR (tasks.hidden = 1 AND calls.parent_uid = :only)) AND instr(:reasons, tasks.pause_reason)
ORDER BY COALESCE(tasks.due_at, 9007199254740991), tasks.updated_at, tasks.uid LIMIT :limit;
