-- create_task: add a new task with its first state, if its id is free. The unique index on current ids decides: of
-- several racing callers one inserts a row. The others get no row, and attach to the task they find.
WITH changed AS (
  INSERT INTO perdure.tasks (uid, namespace, id, status, name, description, agent, tags, config, depends_on,
                             event_count, event_head, created_at, updated_at)
  VALUES (
--> new_task
  )
  ON CONFLICT DO NOTHING
  RETURNING uid, event_count, event_head
),
--> first_rows
--> event
SELECT uid FROM changed;
