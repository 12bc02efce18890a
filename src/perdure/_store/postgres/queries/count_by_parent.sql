-- count_by_parent: count the children of one task that match a filter; at most `look` tasks are examined.
SELECT tasks.status, tasks.pause_reason, count(*)
FROM (
--> lane_parent
) AS looked
--> looked
GROUP BY tasks.status, tasks.pause_reason;
