-- extent_by_status_changed: the last of the `look` tasks that a page examines; no row when there are fewer.
SELECT updated_at, uid FROM (
--> lane_status_changed
) AS looked
LIMIT 1 OFFSET %(look)s::bigint - 1;
