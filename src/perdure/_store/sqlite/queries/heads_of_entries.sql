-- heads_of_entries: the first bytes of each journal entry, which name its key.
SELECT task_uid, line, position, substr(entry, 1, 300)
FROM journal WHERE (task_uid, line, position) > (:uid, :line, :number)
ORDER BY task_uid, line, position LIMIT :limit;
