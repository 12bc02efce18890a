-- page_by_archived: the archived tasks of one status that match a filter, newest first; at most `look` tasks are
-- examined.
SELECT
--> summary_columns
FROM (
--> lane_archived
) AS looked
--> looked
ORDER BY looked.uid DESC LIMIT %(limit)s::bigint;
