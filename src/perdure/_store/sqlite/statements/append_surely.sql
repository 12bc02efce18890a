-- append_surely: append_entry, or an error when it is refused: without the lease there is no position, which must not
-- be NULL. A transaction of its own.
INSERT INTO journal (task_uid, line, position, entry) VALUES
(:uid, :line, (SELECT :position FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker), :entry);
