-- page_by_function: the tasks of one function that match a filter, newest first; at most `look` tasks are examined.
SELECT
--> summary_columns
FROM (
--> lane_function
) AS looked
--> looked
ORDER BY looked.uid DESC LIMIT %(limit)s::bigint;
