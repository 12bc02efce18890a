-- heads_of_webhooks: the first bytes of each record, which name its key. `uid` is the namespace.
SELECT namespace, id, substr(record, 1, 300)
FROM perdure.webhooks WHERE (namespace, id) > (%(uid)s::text, %(id)s::text)
ORDER BY namespace, id LIMIT %(limit)s::bigint;
