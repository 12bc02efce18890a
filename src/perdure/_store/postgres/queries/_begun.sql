taken AS (
  INSERT INTO perdure.leases (task_uid, epoch, worker, taken_at)
  SELECT uid, (%(worker)s::text IS NOT NULL)::int, %(worker)s::text,
         CASE WHEN %(worker)s::text IS NOT NULL THEN %(at)s::bigint END
  FROM changed
),
began AS (
  INSERT INTO perdure.attempts (task_uid, number, worker, host, pid, "user", agent, started_at)
  SELECT uid, 1, %(worker)s::text, %(host)s::text, %(pid)s::bigint, %(user)s::text, %(agent)s::text, %(at)s::bigint
  FROM changed WHERE %(worker)s::text IS NOT NULL
),
--> first_state
called AS (
  INSERT INTO perdure.calls (task_uid, function, version, arguments, queue, priority, parent_uid, budget, key,
                             not_before, deadline_at)
  SELECT uid, %(function)s::text, %(function_version)s::bigint, %(arguments)s::bytea, %(queue)s::text,
         %(priority)s::bigint, %(parent_uid)s::text, %(budget)s::bytea, %(call_key)s::text,
         %(not_before)s::bigint, %(deadline_at)s::bigint
  FROM changed
),
