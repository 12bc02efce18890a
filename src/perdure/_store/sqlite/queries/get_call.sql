-- get_call: the durable function a task carries out, its arguments and queue, and the end of its journal: a line and a
-- position (0 if an older perdure wrote it).
SELECT function, version, arguments, queue, priority, parent_uid, budget, key, not_before, deadline_at, losses,
       COALESCE(journal_ends.line, 0) AS line, COALESCE(journal_ends.position, 0) AS position
FROM calls LEFT JOIN journal_ends ON journal_ends.task_uid = calls.task_uid WHERE calls.task_uid = :uid;
