-- delete_task: delete every row of the task. Its tombstone stays, and keeps the head of its chain.
WITH gone AS (
  DELETE FROM perdure.tasks
  WHERE uid = %(uid)s::text AND version = %(version)s::bigint AND status IN ('completed', 'failed', 'cancelled')
  RETURNING uid, namespace, id, is_current, status, event_count, event_head, created_at
),
tombstone AS (
  INSERT INTO perdure.tombstones (uid, namespace, id, status, event_count, event_head, created_at, deleted_at, author)
  SELECT uid, namespace, id, status, event_count, event_head, created_at, %(at)s::bigint, %(author)s::text FROM gone
  ON CONFLICT (uid) DO UPDATE SET
    namespace = excluded.namespace, id = excluded.id, status = excluded.status, event_count = excluded.event_count,
    event_head = excluded.event_head, deleted_at = excluded.deleted_at, author = excluded.author
),
no_checkpoints AS (
  DELETE FROM perdure.checkpoints WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
),
no_chunks AS (
  DELETE FROM perdure.chunks WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
),
no_journal AS (
  DELETE FROM perdure.journal WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
),
no_end AS (
  DELETE FROM perdure.journal_ends WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
),
no_attempts AS (
  DELETE FROM perdure.attempts WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
),
no_events AS (
  DELETE FROM perdure.events WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
),
no_calls AS (
  DELETE FROM perdure.calls WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
),
no_pauses AS (
  DELETE FROM perdure.pauses WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
),
no_signals AS (
  DELETE FROM perdure.signals WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
),
no_values AS (
  DELETE FROM perdure.shelf WHERE owner = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
),
no_deliveries AS (
  DELETE FROM perdure.deliveries WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
),
no_memory AS (
  DELETE FROM perdure.memory
  WHERE namespace = (SELECT namespace FROM gone) AND owner = (SELECT id FROM gone) AND owner <> ''
    AND life = (SELECT CASE WHEN is_current THEN '' ELSE uid END FROM gone)
),
no_lease AS (
  DELETE FROM perdure.leases WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM gone)
)
SELECT uid FROM gone;
