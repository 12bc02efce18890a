INSERT INTO journal (task_uid, line, position, entry)
SELECT uid, line, json_extract(value, '$[0]'), unhex(json_extract(value, '$[1]'))
FROM tasks, json_each(:entries) WHERE uid = :uid
ON CONFLICT DO NOTHING;
