-- deleted_tasks: what was deleted since a moment, in that order.
SELECT deleted_at, uid FROM perdure.tombstones
WHERE namespace = %(namespace)s::text AND (deleted_at, uid) > (%(at)s::bigint, %(uid)s::text)
ORDER BY deleted_at, uid LIMIT %(limit)s::bigint;
