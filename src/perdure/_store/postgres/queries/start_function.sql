-- start_function: a new task that carries out a durable function, if its id is free.
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
called AS (
  INSERT INTO perdure.calls (task_uid, function, version, arguments, queue, priority, parent_uid, budget, key,
                             not_before, deadline_at)
  SELECT uid, %(function)s::text, %(function_version)s::bigint, %(arguments)s::bytea, %(queue)s::text,
         %(priority)s::bigint, %(parent_uid)s::text, %(budget)s::bytea, %(call_key)s::text,
         %(not_before)s::bigint, %(deadline_at)s::bigint
  FROM changed
),
--> event
SELECT uid FROM changed;
