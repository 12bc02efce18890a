-- free_heads: of these tasks, each with the epoch it was seen at, those that can be claimed, with the heads of their
-- chains of events.
SELECT json_group_array(json_array(uid, event_count, hex(event_head)))
FROM json_each(?) AS asked
CROSS JOIN leases ON task_uid = asked.value ->> 0 AND epoch = asked.value ->> 1 AND worker IS NULL
CROSS JOIN tasks ON uid = task_uid AND status = 'running';
