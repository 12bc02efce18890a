-- heads_of_deliveries: the beginning of what is sealed of each message, where its key is named.
SELECT id, substr(body, 1, 300), substr(answer, 1, 300)
FROM hook_deliveries WHERE id > :uid
ORDER BY id LIMIT :limit;
