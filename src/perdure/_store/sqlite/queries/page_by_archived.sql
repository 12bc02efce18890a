-- page_by_archived: tasks a filter lets through, newest first, out of the archived ones of one status; no more than `look` are looked at.
SELECT
--> summary_columns
FROM (
--> lane_archived
) AS looked
--> looked
LIMIT :limit;
