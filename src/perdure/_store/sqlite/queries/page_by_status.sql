-- page_by_status: tasks a filter lets through, newest first, out of one status, but for archived ones; no more than `look` are looked at.
SELECT
--> summary_columns
FROM (
--> lane_status
) AS looked
--> looked
LIMIT :limit;
