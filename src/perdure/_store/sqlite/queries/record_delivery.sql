-- record_delivery: record how a try ended, and when the next one is due (NULL: never). Refused when another process has
-- already recorded this try. `uid` is the namespace.
UPDATE hook_deliveries SET tries = tries + 1, state = :state, due_at = :due_at, status = :status, sent_at = :at, took_ms = :took_ms,
  answer = :answer
WHERE id = :id AND namespace = :uid AND tries = :tries AND due_at IS NOT NULL
RETURNING tries;
