-- page_by_due: the tasks with a due moment that match a filter, earliest first; at most `look` tasks are examined.
SELECT
--> summary_columns
FROM (
--> lane_due
) AS looked
--> looked
ORDER BY looked.due_at, looked.uid LIMIT %(limit)s::bigint;
