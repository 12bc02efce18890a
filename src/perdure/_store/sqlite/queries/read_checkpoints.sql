-- read_checkpoints: some of a task's checkpoints, oldest first.
SELECT
--> frame_columns
FROM checkpoints WHERE task_uid = :uid AND seq > :after ORDER BY seq LIMIT :limit;
