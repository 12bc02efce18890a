-- create_task: a new task with its first state, if its id is free.
-- The unique index on current ids is the judge: of any number of racing callers one inserts a row,
-- and the others get none and attach to the task they find.
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
