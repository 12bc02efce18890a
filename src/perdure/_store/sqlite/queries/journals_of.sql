-- journals_of: the journals of these tasks in order, each on its task's present line.
SELECT task_uid, position, entry FROM tasks CROSS JOIN journal ON task_uid = uid AND journal.line = tasks.line
WHERE uid IN (SELECT value FROM json_each(:uids)) ORDER BY task_uid, position LIMIT :limit;
