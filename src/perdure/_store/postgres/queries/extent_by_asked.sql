-- extent_by_asked: the last of the `look` questions that a page examines; no row when there are fewer.
SELECT due_at, uid FROM (
--> lane_asked
) AS looked
LIMIT 1 OFFSET %(look)s::bigint - 1;
