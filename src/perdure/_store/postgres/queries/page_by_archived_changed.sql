-- page_by_archived_changed: tasks a filter lets through, changed last first, out of the archived ones of one status; no more than `look` are looked at.
SELECT
--> summary_columns
FROM (
--> lane_archived_changed
) AS looked
--> looked
ORDER BY looked.updated_at DESC, looked.uid DESC LIMIT %(limit)s::bigint;
