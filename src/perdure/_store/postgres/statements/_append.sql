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
