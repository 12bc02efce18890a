-- import_task: add a task with all its rows, as another store exported them, if its id and its uid are both unknown
-- here. Each parameter is a JSON list of one table's rows, in the form of dump_task. A hidden task is not hidden here,
-- because its parent is not imported with it.
WITH changed AS (
  INSERT INTO perdure.tasks SELECT * FROM jsonb_populate_recordset(
    jsonb_populate_record(NULL::perdure.tasks, '{"hidden": 0}'), %(tasks)s::jsonb)
  ON CONFLICT DO NOTHING
  RETURNING uid
),
new_checkpoints AS (
  INSERT INTO perdure.checkpoints
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.checkpoints, %(checkpoints)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
),
new_chunks AS (
  INSERT INTO perdure.chunks
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.chunks, %(chunks)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
),
new_attempts AS (
  INSERT INTO perdure.attempts
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.attempts, %(attempts)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
),
new_events AS (
  INSERT INTO perdure.events
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.events, %(events)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
),
new_journal AS (
  INSERT INTO perdure.journal
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.journal, %(journal)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
),
new_ends AS (
  INSERT INTO perdure.journal_ends (task_uid, line, position)
  SELECT DISTINCT ON (rows.task_uid) rows.task_uid, rows.line, rows.position
  FROM jsonb_populate_recordset(NULL::perdure.journal, %(journal)s::jsonb) AS rows, changed
  ORDER BY rows.task_uid, rows.line DESC, rows.position DESC
  ON CONFLICT DO NOTHING
),
new_calls AS (
  INSERT INTO perdure.calls
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.calls, %(calls)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
),
new_pauses AS (
  INSERT INTO perdure.pauses
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.pauses, %(pauses)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
),
new_signals AS (
  INSERT INTO perdure.signals
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.signals, %(signals)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
),
new_shelf AS (
  INSERT INTO perdure.shelf
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.shelf, %(shelf)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
),
new_deliveries AS (
  INSERT INTO perdure.deliveries
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.deliveries, %(deliveries)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
),
new_leases AS (
  INSERT INTO perdure.leases
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.leases, %(leases)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
),
new_memory AS (
  INSERT INTO perdure.memory
  SELECT rows.* FROM jsonb_populate_recordset(NULL::perdure.memory, %(memory)s::jsonb) AS rows, changed
  ON CONFLICT DO NOTHING
)
SELECT uid FROM changed;
