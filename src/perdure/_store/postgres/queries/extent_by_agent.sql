-- extent_by_agent: how many tasks there are to look at, up to `look`, and the last of those: the tasks of one agent.
SELECT count(*), min(uid) FROM (
--> lane_agent
) AS looked;
