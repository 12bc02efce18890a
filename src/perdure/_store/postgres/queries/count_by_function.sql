-- count_by_function: how many tasks a filter lets through, out of the calls of one function; no more than `look` are looked at.
SELECT tasks.status, tasks.pause_reason, count(*)
FROM (
--> lane_function
) AS looked
--> looked
GROUP BY tasks.status, tasks.pause_reason;
