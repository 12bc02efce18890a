-- page_by_agent: tasks a filter lets through, newest first, out of the tasks of one agent; no more than
-- `look` are looked at.
SELECT
--> summary_columns
FROM (
--> lane_agent
) AS looked
--> looked
ORDER BY looked.uid DESC LIMIT %(limit)s::bigint;
