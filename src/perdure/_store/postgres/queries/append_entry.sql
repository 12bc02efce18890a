-- append_entry: add one journal entry, only while the lease is still ours.
-- The epoch is the fence: a worker that slept through its lease inserts no row and learns that it has lost the lease.
-- FOR SHARE makes a new claim wait until this entry is committed, so the next worker cannot read the
-- journal without it; and it makes this entry wait for a claim under way, and then see its epoch.
-- `|| ''` keeps the planner off the index by worker: a busy process has thousands of leases.
WITH added AS (
  INSERT INTO perdure.journal (task_uid, line, position, entry)
  SELECT %(uid)s::text, %(line)s::bigint, %(position)s::bigint, %(entry)s::bytea
  FROM perdure.leases
  WHERE task_uid = %(uid)s::text AND epoch = %(epoch)s::bigint AND worker || '' = %(worker)s::text
  FOR SHARE
  ON CONFLICT DO NOTHING
  RETURNING task_uid, line, position
),
journal_end AS (
  INSERT INTO perdure.journal_ends (task_uid, line, position) SELECT task_uid, line, position FROM added
  ON CONFLICT (task_uid) DO UPDATE SET line = excluded.line, position = excluded.position
  WHERE (excluded.line, excluded.position) > (journal_ends.line, journal_ends.position)
)
SELECT position FROM added;
