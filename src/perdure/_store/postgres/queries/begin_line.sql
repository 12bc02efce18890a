-- begin_line: the journal continues on a new line, with the function's new arguments; the old line stays readable.
-- Questions of the old line are removed: the new one asks its own, at the same paths. Only the outcome of an effect
-- (topic ~effect) can still be asked and given, as ~LINE~path. Signals taken by the old line stay taken. `entries` are
-- the first of the new line, as for fork_function.
--> fence
changed AS (
  UPDATE perdure.tasks
  SET line = line + 1, version = version + 1, updated_at = %(at)s::bigint,
      event_count = event_count + 1, event_head = sha256(event_head || %(digest)s::bytea)
  WHERE uid = %(uid)s::text AND status = 'running' AND EXISTS (SELECT 1 FROM fence)
  RETURNING uid, line, event_count, event_head
),
called AS (
  UPDATE perdure.calls SET version = %(function_version)s::bigint, arguments = %(arguments)s::bytea
  WHERE task_uid = %(uid)s::text AND EXISTS (SELECT 1 FROM changed)
),
--> left_line
--> entries
--> event
SELECT line FROM changed;
