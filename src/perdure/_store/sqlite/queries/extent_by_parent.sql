-- extent_by_parent: how many tasks there are to look at, up to `look`, and the last of those: what one task has started.
SELECT count(*), min(uid) FROM (
--> lane_parent
) AS looked;
