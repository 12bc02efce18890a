-- page_by_agent: the tasks of one agent that match a filter, newest first; at most `look` tasks are examined.
SELECT
--> summary_columns
FROM (
--> lane_agent
) AS looked
--> looked
ORDER BY looked.uid DESC LIMIT %(limit)s::bigint;
