-- append_surely: append_entry, or an error when it is refused: so that COMMIT can follow unseen.
-- Without the lease there is no position, which must not be NULL; a position that is taken is taken. FOR SHARE and
-- `|| ''` as in append_entry.
INSERT INTO perdure.journal (task_uid, line, position, entry)
VALUES (
  %(uid)s::text, %(line)s::bigint,
  (
    SELECT %(position)s::bigint FROM perdure.leases
    WHERE task_uid = %(uid)s::text AND epoch = %(epoch)s::bigint AND worker || '' = %(worker)s::text
    FOR SHARE
  ),
  %(entry)s::bytea
);
