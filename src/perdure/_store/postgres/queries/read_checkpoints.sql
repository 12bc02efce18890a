-- read_checkpoints: some of a task's checkpoints, oldest first.
SELECT
--> frame_columns
FROM perdure.checkpoints WHERE task_uid = %(uid)s::text AND seq > %(after)s::bigint
ORDER BY seq LIMIT %(limit)s::bigint;
