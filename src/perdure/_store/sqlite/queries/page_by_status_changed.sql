-- page_by_status_changed: the tasks of one status that match a filter, last changed first, without archived ones; at
-- most `look` tasks are examined.
SELECT
--> summary_columns
FROM (
--> lane_status_changed
) AS looked
--> looked
LIMIT :limit;
