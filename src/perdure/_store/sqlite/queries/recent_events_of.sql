-- recent_events_of: events of some kinds, oldest first, among the last `look` events of each of these tasks.
SELECT events.task_uid, events.number, events.at, events.kind, events.author, events.body
FROM tasks JOIN events ON events.task_uid = tasks.uid AND events.number > tasks.event_count - :look
WHERE tasks.uid IN (SELECT value FROM json_each(:uids))
  AND events.kind IN (SELECT value FROM json_each(:kinds))
ORDER BY events.task_uid, events.number;
