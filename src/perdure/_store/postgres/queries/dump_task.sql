-- dump_task: every row a task has, by table, as JSON; bytes as \x and hex digits.
SELECT 'tasks', (to_jsonb(rows) - 'hidden')::text FROM perdure.tasks AS rows WHERE rows.uid = %(uid)s::text
UNION ALL
SELECT 'checkpoints', to_jsonb(rows)::text FROM perdure.checkpoints AS rows WHERE rows.task_uid = %(uid)s::text
UNION ALL
SELECT 'chunks', to_jsonb(rows)::text FROM perdure.chunks AS rows WHERE rows.task_uid = %(uid)s::text
UNION ALL
SELECT 'attempts', to_jsonb(rows)::text FROM perdure.attempts AS rows WHERE rows.task_uid = %(uid)s::text
UNION ALL
SELECT 'events', to_jsonb(rows)::text FROM perdure.events AS rows WHERE rows.task_uid = %(uid)s::text
UNION ALL
SELECT 'journal', to_jsonb(rows)::text FROM perdure.journal AS rows WHERE rows.task_uid = %(uid)s::text
UNION ALL
SELECT 'calls', to_jsonb(rows)::text FROM perdure.calls AS rows WHERE rows.task_uid = %(uid)s::text
UNION ALL
SELECT 'pauses', to_jsonb(rows)::text FROM perdure.pauses AS rows WHERE rows.task_uid = %(uid)s::text
UNION ALL
SELECT 'signals', to_jsonb(rows)::text FROM perdure.signals AS rows WHERE rows.task_uid = %(uid)s::text
UNION ALL
SELECT 'shelf', to_jsonb(rows)::text FROM perdure.shelf AS rows WHERE rows.owner = %(uid)s::text
UNION ALL
SELECT 'deliveries', to_jsonb(rows)::text FROM perdure.deliveries AS rows WHERE rows.task_uid = %(uid)s::text
UNION ALL
SELECT 'leases', to_jsonb(rows)::text FROM perdure.leases AS rows WHERE rows.task_uid = %(uid)s::text
UNION ALL
SELECT 'memory', to_jsonb(rows)::text FROM perdure.memory AS rows WHERE (rows.namespace, rows.owner, rows.life) = (
  SELECT namespace, id, CASE WHEN is_current THEN '' ELSE uid END FROM perdure.tasks WHERE uid = %(uid)s::text);
