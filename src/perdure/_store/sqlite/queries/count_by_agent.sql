-- count_by_agent: how many tasks a filter lets through, out of the tasks of one agent; no more than `look` are looked at.
SELECT tasks.status, tasks.pause_reason, count(*)
FROM (
--> lane_agent
) AS looked
--> looked
GROUP BY tasks.status, tasks.pause_reason;
