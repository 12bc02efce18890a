-- count_by_function: count the tasks of one function that match a filter; at most `look` tasks are examined.
SELECT tasks.status, tasks.pause_reason, count(*)
FROM (
--> lane_function
) AS looked
--> looked
GROUP BY tasks.status, tasks.pause_reason;
