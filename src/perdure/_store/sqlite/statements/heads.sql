-- heads: the heads of the chains of events of these tasks.
SELECT json_group_array(json_array(uid, event_count, hex(event_head)))
FROM json_each(?) AS asked CROSS JOIN tasks ON uid = asked.value;
