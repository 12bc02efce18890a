-- heads_of_tasks: the first bytes of each task's sealed columns, which name their keys.
SELECT uid, substr(config, 1, 300), substr(pause, 1, 300), substr(progress, 1, 300), substr(result, 1, 300),
       substr(error, 1, 300)
FROM perdure.tasks WHERE uid > %(uid)s::text ORDER BY uid LIMIT %(limit)s::bigint;
