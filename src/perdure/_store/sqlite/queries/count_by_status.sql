-- count_by_status: count the tasks of one status that match a filter, without archived ones; at most `look` tasks are
-- examined.
SELECT tasks.status, tasks.pause_reason, count(*)
FROM (
--> lane_status
) AS looked
--> looked
GROUP BY tasks.status, tasks.pause_reason;
