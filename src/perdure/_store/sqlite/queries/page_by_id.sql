-- page_by_id: tasks a filter lets through, those whose id begins with a text, in the order of their ids; no more than `look` are looked at.
SELECT
--> summary_columns
FROM (
--> lane_id
) AS looked
--> looked
LIMIT :limit;
