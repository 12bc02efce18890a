-- heads_of_webhooks: the beginning of each record, where its key is named. `uid` is the namespace.
SELECT namespace, id, substr(record, 1, 300)
FROM webhooks WHERE (namespace, id) > (:uid, :id)
ORDER BY namespace, id LIMIT :limit;
