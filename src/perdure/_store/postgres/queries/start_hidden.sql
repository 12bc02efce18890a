-- start_hidden: as start_function, for a task that is a hidden part of its parent.
WITH changed AS (
  INSERT INTO perdure.tasks (uid, namespace, id, status, name, description, agent, tags, config, depends_on,
                             event_count, event_head, created_at, updated_at, attempts, started_at, hidden)
  VALUES (
--> new_task
    , (%(worker)s::text IS NOT NULL)::int, CASE WHEN %(worker)s::text IS NOT NULL THEN %(at)s::bigint END, 1
  )
  ON CONFLICT DO NOTHING
  RETURNING uid, line, event_count, event_head
),
--> begun
--> event
SELECT uid FROM changed;
