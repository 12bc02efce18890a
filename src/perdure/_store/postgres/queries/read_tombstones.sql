-- read_tombstones: the deleted tasks, when each was deleted and by whom.
SELECT uid, namespace, id, status, event_count, event_head, created_at, deleted_at, author
FROM perdure.tombstones WHERE namespace = %(namespace)s::text ORDER BY uid;
