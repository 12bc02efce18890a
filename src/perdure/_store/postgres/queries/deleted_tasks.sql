-- deleted_tasks: the tasks that were deleted since a moment, in the order of deletion.
SELECT deleted_at, uid FROM perdure.tombstones
WHERE namespace = %(namespace)s::text AND (deleted_at, uid) > (%(at)s::bigint, %(uid)s::text)
ORDER BY deleted_at, uid LIMIT %(limit)s::bigint;
