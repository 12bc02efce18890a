-- page_by_id: tasks that match a filter and whose id begins with a text, in the order of their ids; at most `look`
-- tasks are examined.
SELECT
--> summary_columns
FROM (
--> lane_id
) AS looked
--> looked
LIMIT :limit;
