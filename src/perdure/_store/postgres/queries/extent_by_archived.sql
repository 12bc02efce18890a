-- extent_by_archived: how many tasks there are to look at, up to `look`, and the last of those: what is archived of one status.
SELECT count(*), min(uid) FROM (
--> lane_archived
) AS looked;
