-- extent_by_function: how many tasks there are to look at, up to `look`, and the last of those: the calls of one function.
SELECT count(*), min(uid) FROM (
--> lane_function
) AS looked;
