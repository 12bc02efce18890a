-- inbox_questions: the open questions of durable functions to people, the soonest to expire first, then the oldest; the
-- page begins after a place in that order. Of ended tasks, only questions about effects (topic ~effect) are included.
SELECT tasks.uid, tasks.id, tasks.line, path, reason, topic, question, asked_at, pauses.due_at, expires_at,
       calls.function,
       (SELECT parent.id FROM tasks AS parent WHERE tasks.hidden = 1 AND parent.uid = calls.parent_uid) AS part_of
FROM pauses INDEXED BY pauses_open CROSS JOIN tasks ON tasks.uid = pauses.task_uid
     LEFT JOIN calls ON calls.task_uid = pauses.task_uid
WHERE answer IS NULL AND reason IN ('human_approval', 'human_input')
  AND (COALESCE(expires_at, 9007199254740991), asked_at, pauses.task_uid, path) > (:expires, :asked, :uid, :path)
  AND tasks.namespace = :namespace AND (:only IS NULL OR pauses.task_uid = :only OR (tasks.hidden = 1 AND calls.parent_uid = :only))
  AND instr(:kinds, CASE WHEN topic = '~effect' THEN 'effect' WHEN reason = 'human_approval' THEN 'approval' ELSE 'input' END)
  AND (tasks.status IN ('pending', 'running', 'paused') OR topic = '~effect')
ORDER BY COALESCE(expires_at, 9007199254740991), asked_at, pauses.task_uid, path LIMIT :limit;
