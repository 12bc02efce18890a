-- page_by_changed: tasks a filter lets through, what was changed last first; no more than `look` are looked at.
SELECT
--> summary_columns
FROM (
--> lane_changed
) AS looked
--> looked
LIMIT :limit;
