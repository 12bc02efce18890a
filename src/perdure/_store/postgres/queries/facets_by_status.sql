-- facets_by_status: the values by which the newest tasks of one status can be filtered; at most `look` tasks are
-- examined.
SELECT calls.function, calls.queue, tasks.agent, tasks.tags, count(*)
FROM (
--> lane_status
) AS looked
--> looked
GROUP BY calls.function, calls.queue, tasks.agent, tasks.tags;
