-- deleted_tasks: the tasks that were deleted since a moment, in the order of deletion.
SELECT deleted_at, uid FROM tombstones
WHERE namespace = :namespace AND (deleted_at, uid) > (:at, :uid)
ORDER BY deleted_at, uid LIMIT :limit;
