-- page_by_parent: the children of one task that match a filter, newest first; at most `look` tasks are examined.
SELECT
--> summary_columns
FROM (
--> lane_parent
) AS looked
--> looked
ORDER BY looked.uid DESC LIMIT %(limit)s::bigint;
