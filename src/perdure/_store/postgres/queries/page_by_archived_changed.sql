-- page_by_archived_changed: the archived tasks of one status that match a filter, last changed first; at most `look`
-- tasks are examined.
SELECT
--> summary_columns
FROM (
--> lane_archived_changed
) AS looked
--> looked
ORDER BY looked.updated_at DESC, looked.uid DESC LIMIT %(limit)s::bigint;
