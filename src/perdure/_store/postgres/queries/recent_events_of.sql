-- recent_events_of: events of some kinds, oldest first, among the last `look` events of each of these tasks.
SELECT events.task_uid, events.number, events.at, events.kind, events.author, events.body
FROM perdure.tasks JOIN perdure.events ON events.task_uid = tasks.uid AND events.number > tasks.event_count - %(look)s::bigint
WHERE tasks.uid = ANY (ARRAY(SELECT json_array_elements_text(%(uids)s::json)))
  AND events.kind = ANY (ARRAY(SELECT json_array_elements_text(%(kinds)s::json)))
ORDER BY events.task_uid, events.number;
