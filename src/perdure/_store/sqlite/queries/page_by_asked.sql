-- page_by_asked: durable functions that have a question with a due moment, earliest first.
SELECT
--> summary_columns
FROM (
--> lane_asked
) AS looked
--> looked
  AND tasks.due_at IS NULL AND tasks.status IN ('pending', 'running', 'paused')
LIMIT :limit;
