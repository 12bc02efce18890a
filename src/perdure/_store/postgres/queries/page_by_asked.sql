-- page_by_asked: durable functions one of whose questions is due at some moment, the earliest first.
SELECT
--> summary_columns
FROM (
--> lane_asked
) AS looked
--> looked
  AND tasks.due_at IS NULL AND tasks.status IN ('pending', 'running', 'paused')
ORDER BY looked.due_at, looked.uid LIMIT %(limit)s::bigint;
