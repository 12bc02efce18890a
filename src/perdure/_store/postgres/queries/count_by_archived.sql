-- count_by_archived: how many tasks a filter lets through, out of the archived ones of one status; no more than `look` are looked at.
SELECT tasks.status, tasks.pause_reason, count(*)
FROM (
--> lane_archived
) AS looked
--> looked
GROUP BY tasks.status, tasks.pause_reason;
