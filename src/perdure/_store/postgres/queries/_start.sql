WITH changed AS (
  INSERT INTO perdure.tasks (uid, namespace, id, status, name, description, agent, tags, config, depends_on,
                             event_count, event_head, created_at, updated_at, attempts, started_at)
  VALUES (
--> new_task
    , (%(worker)s::text IS NOT NULL)::int, CASE WHEN %(worker)s::text IS NOT NULL THEN %(at)s::bigint END
  )
  ON CONFLICT DO NOTHING
  RETURNING uid, line, event_count, event_head
),
--> begun
