-- heads_of_deliveries: the beginning of what is sealed of each message, where its key is named.
SELECT id, substr(body, 1, 300), substr(answer, 1, 300)
FROM perdure.hook_deliveries WHERE id > %(uid)s::text
ORDER BY id LIMIT %(limit)s::bigint;
