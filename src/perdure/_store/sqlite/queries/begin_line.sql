-- begin_line: the journal continues on a new line, with the function's new arguments; the old line stays readable.
-- Questions of the old line are removed: the new one asks its own, at the same paths. Only the outcome of an effect
-- (topic ~effect) can still be asked and given, as ~LINE~path. Signals taken by the old line stay taken. `entries` are
-- the first of the new line, as for fork_function.
UPDATE tasks SET line = line + 1, version = version + 1, updated_at = :at,
                 event_count = event_count + 1, event_head = chain(event_head, :digest)
WHERE uid = :uid AND status = 'running'
  AND EXISTS (SELECT 1 FROM leases WHERE task_uid = :uid AND epoch = :epoch AND worker = :worker)
RETURNING line;
UPDATE calls SET version = :function_version, arguments = :arguments WHERE task_uid = :uid;
--> left_line
--> entries
--> event
