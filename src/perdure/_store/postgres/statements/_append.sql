WITH added AS (
  INSERT INTO perdure.journal (task_uid, line, position, entry)
  SELECT given.uid, given.line, given.position, given.entry
  FROM unnest(%(uid)s::text[], %(line)s::bigint[], %(position)s::bigint[], %(entry)s::bytea[], %(epoch)s::bigint[],
              %(worker)s::text[]) AS given (uid, line, position, entry, epoch, worker)
  CROSS JOIN LATERAL (
    SELECT 1 FROM perdure.leases
    WHERE task_uid = given.uid AND epoch = given.epoch AND worker || '' = given.worker
    FOR SHARE
  ) AS fence
  ON CONFLICT DO NOTHING
  RETURNING task_uid, line, position
),
journal_end AS (
  INSERT INTO perdure.journal_ends (task_uid, line, position)
  SELECT DISTINCT ON (task_uid) task_uid, line, position FROM added ORDER BY task_uid, line DESC, position DESC
  ON CONFLICT (task_uid) DO UPDATE SET line = excluded.line, position = excluded.position
  WHERE (excluded.line, excluded.position) > (journal_ends.line, journal_ends.position)
)
