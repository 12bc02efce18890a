-- append_entries: append_entry for many entries at once, each behind its own fence.
-- The engine has locked the leases already, in order. A tenth of the time of as many statements.
-- LATERAL and `|| ''`: each lease is looked up by its task, whatever the planner believes of the tables.
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
RETURNING task_uid, line, position;
