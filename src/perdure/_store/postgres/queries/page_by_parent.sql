-- page_by_parent: tasks a filter lets through, newest first, out of what one task has started; no more than
-- `look` are looked at.
SELECT
--> summary_columns
FROM (
--> lane_parent
) AS looked
--> looked
ORDER BY looked.uid DESC LIMIT %(limit)s::bigint;
