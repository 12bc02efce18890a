-- page_by_status_changed: tasks a filter lets through, changed last first, out of one status, but for archived ones; no more than `look` are looked at.
SELECT
--> summary_columns
FROM (
--> lane_status_changed
) AS looked
--> looked
LIMIT :limit;
