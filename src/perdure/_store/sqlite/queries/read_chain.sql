-- read_chain: a checkpoint and the frames it is built from, keyframe first.
-- UNION, not UNION ALL: the walk must end at a damaged record that names itself as its base.
WITH RECURSIVE links (seq) AS (
  SELECT :target
  UNION
  SELECT checkpoints.base FROM links JOIN checkpoints ON checkpoints.task_uid = :uid AND checkpoints.seq = links.seq
  WHERE checkpoints.base IS NOT NULL
)
SELECT
--> frame_columns
FROM checkpoints WHERE task_uid = :uid AND seq IN (SELECT seq FROM links) ORDER BY seq;
