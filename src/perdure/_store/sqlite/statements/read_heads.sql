-- read_heads: where the chains of events of these tasks stand, as far as they are at work.
SELECT uid, event_count, event_head FROM tasks
WHERE uid IN (SELECT value FROM json_each(?)) AND is_current AND status = 'running';
