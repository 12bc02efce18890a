-- list_all: every task, with history and archived ones, in the order they were made; for upkeep.
SELECT
--> task_columns
FROM tasks WHERE (:namespace IS NULL OR namespace = :namespace) AND uid > :after ORDER BY uid LIMIT :limit;
