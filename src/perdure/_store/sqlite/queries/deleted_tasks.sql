-- deleted_tasks: what was deleted since a moment, in that order.
SELECT deleted_at, uid FROM tombstones
WHERE namespace = :namespace AND (deleted_at, uid) > (:at, :uid)
ORDER BY deleted_at, uid LIMIT :limit;
