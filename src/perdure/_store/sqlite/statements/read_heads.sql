-- read_heads: where the chains of events of these tasks stand, in their order, as far as they are at work.
SELECT json_group_array(json_array(event_count, hex(event_head)) ORDER BY given.key)
FROM json_each(?) AS given CROSS JOIN tasks ON uid = given.value WHERE is_current AND status = 'running';
