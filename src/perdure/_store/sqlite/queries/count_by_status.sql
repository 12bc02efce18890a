-- count_by_status: how many tasks a filter lets through, out of one status, but for archived ones; no more than `look` are looked at.
SELECT tasks.status, tasks.pause_reason, count(*)
FROM (
--> lane_status
) AS looked
--> looked
GROUP BY tasks.status, tasks.pause_reason;
