-- count_by_archived: count the archived tasks of one status that match a filter; at most `look` tasks are examined.
SELECT tasks.status, tasks.pause_reason, count(*)
FROM (
--> lane_archived
) AS looked
--> looked
GROUP BY tasks.status, tasks.pause_reason;
