-- extent_by_id: the last of the `look` tasks that a page examines; no row when there are fewer.
SELECT id FROM (
--> lane_id
) AS looked
LIMIT 1 OFFSET %(look)s::bigint - 1;
