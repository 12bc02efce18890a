-- release: give the lease back after the attempt has ended by itself; any process may claim it.
UPDATE leases SET worker = NULL WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker RETURNING epoch;
UPDATE attempts SET ended_at = :at, ended = :ended WHERE task_uid = :uid AND ended_at IS NULL;
UPDATE tasks SET version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid;
--> event
