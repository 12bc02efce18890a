-- read_frame: one checkpoint.
SELECT
--> frame_columns
FROM perdure.checkpoints WHERE task_uid = %(uid)s::text AND seq = %(target)s::bigint;
