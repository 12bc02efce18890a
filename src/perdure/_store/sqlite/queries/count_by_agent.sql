-- count_by_agent: count the tasks of one agent that match a filter; at most `look` tasks are examined.
SELECT tasks.status, tasks.pause_reason, count(*)
FROM (
--> lane_agent
) AS looked
--> looked
GROUP BY tasks.status, tasks.pause_reason;
