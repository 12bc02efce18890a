-- append_surely: append_entry, but with an error when it is refused, so that COMMIT can be sent without waiting for the
-- answer. Without the lease the position is NULL, which its column refuses; a position in use breaks the primary key.
-- FOR SHARE and `|| ''` as in append_entry.
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
