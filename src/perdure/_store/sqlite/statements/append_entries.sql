-- append_entries: append_entry for many, or an error when one is refused: without its lease there is no position,
-- which must not be NULL.
INSERT INTO journal (task_uid, line, position, entry)
SELECT :uid, :line, (SELECT :position FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker),
       :entry;
