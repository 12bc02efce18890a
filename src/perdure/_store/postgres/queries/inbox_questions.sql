-- inbox_questions: the open questions of durable functions to people, the soonest to expire first, then the oldest; the
-- page begins after a place in that order. Of ended tasks, only questions about effects (topic ~effect) are included.
SELECT tasks.uid, tasks.id, tasks.line, path, reason, topic, question, asked_at, pauses.due_at, expires_at,
       calls.function,
       (SELECT parent.id FROM perdure.tasks AS parent WHERE tasks.hidden = 1 AND parent.uid = calls.parent_uid) AS part_of
FROM perdure.pauses JOIN perdure.tasks ON tasks.uid = pauses.task_uid
     LEFT JOIN perdure.calls ON calls.task_uid = pauses.task_uid
WHERE answer IS NULL AND reason IN ('human_approval', 'human_input')
  AND (COALESCE(expires_at, 9007199254740991), asked_at, pauses.task_uid, path) > (%(expires)s::bigint, %(asked)s::bigint, %(uid)s::text, %(path)s::text)
  AND tasks.namespace = %(namespace)s::text AND (%(only)s::text IS NULL OR pauses.task_uid = %(only)s::text OR (tasks.hidden = 1 AND calls.parent_uid = %(only)s::text))
  AND strpos(%(kinds)s::text, CASE WHEN topic = '~effect' THEN 'effect' WHEN reason = 'human_approval' THEN 'approval' ELSE 'input' END) > 0
  AND (tasks.status IN ('pending', 'running', 'paused') OR topic = '~effect')
ORDER BY COALESCE(expires_at, 9007199254740991), asked_at, pauses.task_uid, path LIMIT %(limit)s::bigint;
