-- record_delivery: record how a try ended, and when the next one is due (NULL: never). Refused when another process has
-- already recorded this try. `uid` is the namespace.
UPDATE perdure.hook_deliveries SET tries = tries + 1, state = %(state)s::text, due_at = %(due_at)s::bigint, status = %(status)s::bigint, sent_at = %(at)s::bigint, took_ms = %(took_ms)s::bigint,
  answer = %(answer)s::bytea
WHERE id = %(id)s::text AND namespace = %(uid)s::text AND tries = %(tries)s::bigint AND due_at IS NOT NULL
RETURNING tries;
