-- page_by_function: tasks a filter lets through, newest first, out of the calls of one function; no more than
-- `look` are looked at.
SELECT
--> summary_columns
FROM (
--> lane_function
) AS looked
--> looked
ORDER BY looked.uid DESC LIMIT %(limit)s::bigint;
