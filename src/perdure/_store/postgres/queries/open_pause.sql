-- open_pause: ask a question of a durable function, once; only while the lease is ours.
-- With a topic the question waits for a signal of that name. A signal that came earlier answers it at once.
--> fence
early AS (
  SELECT number, value, sent_by FROM perdure.signals
  WHERE task_uid = %(uid)s::text AND name = %(topic)s::text AND taken_by IS NULL
    AND NOT EXISTS (SELECT 1 FROM perdure.pauses WHERE task_uid = %(uid)s::text AND path = %(path)s::text)
  ORDER BY number LIMIT 1
),
opened AS (
  INSERT INTO perdure.pauses (task_uid, path, reason, topic, question, asked_at, due_at,
                              answer, answered_at, answered_by, expires_at)
  SELECT %(uid)s::text, %(path)s::text, %(reason)s::text, %(topic)s::text, %(question)s::bytea, %(at)s::bigint,
         %(due_at)s::bigint, early.value, CASE WHEN early.value IS NOT NULL THEN %(at)s::bigint END, early.sent_by,
         %(expires_at)s::bigint
  FROM fence LEFT JOIN early ON true
  ON CONFLICT (task_uid, path) DO UPDATE SET path = excluded.path
  RETURNING path
),
taken AS (
  UPDATE perdure.signals SET taken_by = opened.path FROM opened, early
  WHERE signals.task_uid = %(uid)s::text AND signals.name = %(topic)s::text AND signals.number = early.number
)
SELECT path FROM opened;
