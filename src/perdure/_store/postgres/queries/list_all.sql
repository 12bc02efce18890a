-- list_all: every task, with history and archived ones, in the order they were made; for upkeep.
SELECT
--> task_columns
FROM perdure.tasks
WHERE (%(namespace)s::text IS NULL OR namespace = %(namespace)s::text) AND uid > %(after)s::text
ORDER BY uid LIMIT %(limit)s::bigint;
