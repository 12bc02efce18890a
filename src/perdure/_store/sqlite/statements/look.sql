-- look: how many of these tasks are this attempt's worker's to write for, under this epoch; and where the chains of
-- events of those others stand, in their order, as far as they are at work.
SELECT (SELECT count(*) FROM leases
        WHERE task_uid IN (SELECT value FROM json_each(?)) AND epoch = ? AND worker = ?),
       (SELECT json_group_array(json_array(event_count, hex(event_head)) ORDER BY ended.key)
        FROM json_each(?) AS ended CROSS JOIN tasks ON uid = ended.value WHERE is_current AND status = 'running');
