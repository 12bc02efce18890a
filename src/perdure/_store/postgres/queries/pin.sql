-- pin: protect a checkpoint from gc, or stop protecting it.
UPDATE perdure.checkpoints SET pinned = (%(pinned)s::int <> 0)
WHERE task_uid = %(uid)s::text AND seq = %(target)s::bigint
RETURNING seq;
