-- read_pauses: the questions of a task, answered or not, in the order they were asked.
SELECT path, reason, topic, question, asked_at, due_at, answer, answered_at, answered_by
FROM perdure.pauses WHERE task_uid = %(uid)s::text ORDER BY asked_at, path;
