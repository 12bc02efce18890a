-- extent_by_agent: the last of the `look` tasks that a page examines; no row when there are fewer.
SELECT uid FROM (
--> lane_agent
) AS looked
LIMIT 1 OFFSET :look - 1;
