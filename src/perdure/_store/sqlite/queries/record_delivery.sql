-- record_delivery: how a try has ended, and when the next one is due (NULL: there is none). Refused when another process
-- has recorded this try. `uid` is the namespace.
UPDATE hook_deliveries SET tries = tries + 1, state = :state, due_at = :due_at, status = :status, sent_at = :at, took_ms = :took_ms,
  answer = :answer
WHERE id = :id AND namespace = :uid AND tries = :tries AND due_at IS NOT NULL
RETURNING tries;
