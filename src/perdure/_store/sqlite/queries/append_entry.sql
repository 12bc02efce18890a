-- append_entry: add one journal entry, only while the lease is still ours.
-- The epoch is the fence: a worker that slept through its lease inserts no row and learns that it has lost the lease.
INSERT INTO journal (task_uid, line, position, entry)
SELECT :uid, :line, :position, :entry FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker
ON CONFLICT DO NOTHING;
