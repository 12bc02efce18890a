-- facets_by_status: what the newest tasks of one status can be filtered by; no more than `look` are looked at.
SELECT calls.function, calls.queue, tasks.agent, tasks.tags, count(*)
FROM (
--> lane_status
) AS looked
--> looked
GROUP BY calls.function, calls.queue, tasks.agent, tasks.tags;
