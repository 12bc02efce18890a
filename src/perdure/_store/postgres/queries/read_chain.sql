-- read_chain: a checkpoint and the frames it is built from, keyframe first.
-- UNION, not UNION ALL: the walk must end at damaged rows that name each other as their base.
WITH RECURSIVE links (seq) AS (
  SELECT %(target)s::bigint
  UNION
  SELECT checkpoints.base
  FROM links JOIN perdure.checkpoints ON checkpoints.task_uid = %(uid)s::text AND checkpoints.seq = links.seq
  WHERE checkpoints.base IS NOT NULL
)
SELECT
--> frame_columns
FROM perdure.checkpoints WHERE task_uid = %(uid)s::text AND seq IN (SELECT seq FROM links) ORDER BY seq;
