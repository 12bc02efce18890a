-- extent_by_archived_changed: the last of the `look` tasks that a page examines; no row when there are fewer.
SELECT updated_at, uid FROM (
--> lane_archived_changed
) AS looked
LIMIT 1 OFFSET :look - 1;
