asked AS (
  DELETE FROM perdure.pauses
  WHERE task_uid = %(uid)s::text AND (topic IS NULL OR topic <> '~effect') AND EXISTS (SELECT 1 FROM changed)
),
stayed AS (
  UPDATE perdure.pauses SET path = '~' || ((SELECT line FROM changed) - 1) || '~' || path
  WHERE task_uid = %(uid)s::text AND topic = '~effect' AND left(path, 1) <> '~' AND EXISTS (SELECT 1 FROM changed)
),
heard AS (
  UPDATE perdure.signals SET taken_by = '~'
  WHERE task_uid = %(uid)s::text AND taken_by IS NOT NULL AND EXISTS (SELECT 1 FROM changed)
),
