-- extent_by_parent: the last of the `look` tasks that a page examines; no row when there are fewer.
SELECT uid FROM (
--> lane_parent
) AS looked
LIMIT 1 OFFSET %(look)s::bigint - 1;
