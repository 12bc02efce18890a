-- delete_task: delete every row of the task. Its tombstone stays, and keeps the head of its chain.
-- A task that was deleted, imported again from a bundle and deleted again has its newest tombstone.
INSERT INTO tombstones (uid, namespace, id, status, event_count, event_head, created_at, deleted_at, author)
SELECT uid, namespace, id, status, event_count, event_head, created_at, :at, :author
FROM tasks WHERE uid = :uid AND version = :version AND status IN ('completed', 'failed', 'cancelled')
ON CONFLICT (uid) DO UPDATE SET
  namespace = excluded.namespace, id = excluded.id, status = excluded.status, event_count = excluded.event_count,
  event_head = excluded.event_head, deleted_at = excluded.deleted_at, author = excluded.author
RETURNING uid;
DELETE FROM checkpoints WHERE task_uid = :uid;
DELETE FROM chunks WHERE task_uid = :uid;
DELETE FROM journal WHERE task_uid = :uid;
DELETE FROM journal_ends WHERE task_uid = :uid;
DELETE FROM attempts WHERE task_uid = :uid;
DELETE FROM events WHERE task_uid = :uid;
DELETE FROM leases WHERE task_uid = :uid;
DELETE FROM memory WHERE (namespace, owner, life) = (
  SELECT namespace, id, CASE WHEN is_current THEN '' ELSE uid END FROM tasks WHERE uid = :uid);
DELETE FROM tasks WHERE uid = :uid;
DELETE FROM calls WHERE task_uid = :uid;
DELETE FROM pauses WHERE task_uid = :uid;
DELETE FROM signals WHERE task_uid = :uid;
DELETE FROM shelf WHERE owner = :uid;
DELETE FROM deliveries WHERE task_uid = :uid;
