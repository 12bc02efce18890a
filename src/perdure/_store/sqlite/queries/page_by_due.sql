-- page_by_due: tasks a filter lets through, tasks that are to be looked at at some moment, the earliest first; no more than `look` are looked at.
SELECT
--> summary_columns
FROM (
--> lane_due
) AS looked
--> looked
LIMIT :limit;
