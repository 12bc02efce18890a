-- checkpoint: add a snapshot, which becomes the state; only while the lease is ours.
-- A delta names the checkpoint it was made from; if the state has moved since, nothing is written.
UPDATE tasks SET seq = seq + 1, state_seq = seq + 1, version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid AND status IN ('running', 'paused') AND state_seq = :parent
  AND EXISTS (SELECT 1 FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker)
RETURNING seq, version, status;
--> checkpoint
--> event
