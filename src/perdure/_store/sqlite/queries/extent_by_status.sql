-- extent_by_status: the last of the `look` tasks that a page examines; no row when there are fewer.
SELECT uid FROM (
--> lane_status
) AS looked
LIMIT 1 OFFSET :look - 1;
