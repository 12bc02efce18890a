-- deliver: record that a handler has received the events of a task up to this one. The number never falls.
INSERT INTO deliveries (task_uid, handler, delivered)
SELECT uid, :handler, :delivered FROM tasks WHERE uid = :uid
ON CONFLICT (task_uid, handler) DO UPDATE SET delivered = excluded.delivered
WHERE deliveries.delivered < excluded.delivered
RETURNING delivered;
