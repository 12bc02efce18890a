-- extent_by_archived: the last of the `look` tasks that a page examines; no row when there are fewer.
SELECT uid FROM (
--> lane_archived
) AS looked
LIMIT 1 OFFSET :look - 1;
