-- open_pause: a question of a durable function, asked once; only while the lease is ours.
INSERT INTO pauses (task_uid, path, reason, question, asked_at, due_at)
SELECT :uid, :path, :reason, :question, :at, :due_at
FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker
ON CONFLICT (task_uid, path) DO UPDATE SET path = excluded.path
RETURNING path;
