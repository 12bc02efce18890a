-- count_tasks: how many tasks of a namespace have each status and reason; from one index alone.
SELECT status, pause_reason, count(*) FROM tasks
WHERE namespace = :namespace AND is_current AND archived_at IS NULL
GROUP BY status, pause_reason;
