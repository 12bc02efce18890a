-- page_by_status: the tasks of one status that match a filter, newest first, without archived ones; at most `look`
-- tasks are examined.
SELECT
--> summary_columns
FROM (
--> lane_status
) AS looked
--> looked
ORDER BY looked.uid DESC LIMIT %(limit)s::bigint;
