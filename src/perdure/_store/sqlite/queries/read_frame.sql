-- read_frame: one checkpoint.
SELECT
--> frame_columns
FROM checkpoints WHERE task_uid = :uid AND seq = :target;
