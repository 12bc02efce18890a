-- read_lines: the lines of a task's journal, newest first: where each begins and ends, and its first entry.
SELECT found.line, found.first, found.last, begun.entry
FROM (SELECT line, MIN(position) AS first, MAX(position) AS last FROM journal
      WHERE task_uid = :uid GROUP BY line ORDER BY line DESC LIMIT :limit) AS found
JOIN journal AS begun ON begun.task_uid = :uid AND begun.line = found.line AND begun.position = found.first
ORDER BY found.line DESC;
