copied AS (
  INSERT INTO perdure.journal (task_uid, line, position, entry)
  SELECT uid, line, (pair ->> 0)::bigint, decode(pair ->> 1, 'hex')
  FROM changed, json_array_elements(%(entries)s::json) AS pair
  ON CONFLICT DO NOTHING
  RETURNING task_uid, line, position
),
journal_end AS (
  INSERT INTO perdure.journal_ends (task_uid, line, position)
  SELECT DISTINCT ON (task_uid) task_uid, line, position FROM copied ORDER BY task_uid, line DESC, position DESC
  ON CONFLICT (task_uid) DO UPDATE SET line = excluded.line, position = excluded.position
  WHERE (excluded.line, excluded.position) > (journal_ends.line, journal_ends.position)
),
