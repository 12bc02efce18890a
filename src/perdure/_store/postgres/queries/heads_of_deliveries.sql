-- heads_of_deliveries: the first bytes of each sealed message, which name its key.
SELECT id, substr(body, 1, 300), substr(answer, 1, 300)
FROM perdure.hook_deliveries WHERE id > %(uid)s::text
ORDER BY id LIMIT %(limit)s::bigint;
