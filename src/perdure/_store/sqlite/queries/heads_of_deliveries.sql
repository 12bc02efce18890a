-- heads_of_deliveries: the first bytes of each sealed message, which name its key.
SELECT id, substr(body, 1, 300), substr(answer, 1, 300)
FROM hook_deliveries WHERE id > :uid
ORDER BY id LIMIT :limit;
