-- count_by_parent: how many tasks a filter lets through, out of what one task has started; no more than `look` are looked at.
SELECT tasks.status, tasks.pause_reason, count(*)
FROM (
--> lane_parent
) AS looked
--> looked
GROUP BY tasks.status, tasks.pause_reason;
