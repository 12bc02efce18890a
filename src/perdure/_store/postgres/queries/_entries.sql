copied AS (
  INSERT INTO perdure.journal (task_uid, line, position, entry)
  SELECT uid, line, (pair ->> 0)::bigint, decode(pair ->> 1, 'hex')
  FROM changed, json_array_elements(%(entries)s::json) AS pair
  ON CONFLICT DO NOTHING
),
