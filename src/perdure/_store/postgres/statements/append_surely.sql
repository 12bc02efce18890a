-- append_surely: append_entry, or an error when it is refused: so that COMMIT can follow unseen.
-- Without the lease there is no position, which must not be NULL; a position that is taken is taken. FOR SHARE and
-- `|| ''` as in append_entry.
WITH added AS (
  INSERT INTO perdure.journal (task_uid, line, position, entry)
  VALUES (
    %(uid)s::text, %(line)s::bigint,
    (
      SELECT %(position)s::bigint FROM perdure.leases
      WHERE task_uid = %(uid)s::text AND epoch = %(epoch)s::bigint AND worker || '' = %(worker)s::text
      FOR SHARE
    ),
    %(entry)s::bytea
  )
  RETURNING task_uid, line, position
)
INSERT INTO perdure.journal_ends (task_uid, line, position) SELECT task_uid, line, position FROM added
ON CONFLICT (task_uid) DO UPDATE SET line = excluded.line, position = excluded.position
WHERE (excluded.line, excluded.position) > (journal_ends.line, journal_ends.position);
