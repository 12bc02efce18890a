DELETE FROM pauses WHERE task_uid = :uid AND (topic IS NULL OR topic <> '~effect');
UPDATE pauses SET path = '~' || (SELECT line - 1 FROM tasks WHERE uid = :uid) || '~' || path
WHERE task_uid = :uid AND substr(path, 1, 1) <> '~';
UPDATE signals SET taken_by = '~' WHERE task_uid = :uid AND taken_by IS NOT NULL;
