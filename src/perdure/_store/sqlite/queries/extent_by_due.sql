-- extent_by_due: the last of the `look` tasks that a page examines; no row when there are fewer.
SELECT due_at, uid FROM (
--> lane_due
) AS looked
LIMIT 1 OFFSET :look - 1;
