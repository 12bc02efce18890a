-- extent_by_status: how many tasks there are to look at, up to `look`, and the last of those: one status of a namespace, out of which nothing is archived.
SELECT count(*), min(uid) FROM (
--> lane_status
) AS looked;
