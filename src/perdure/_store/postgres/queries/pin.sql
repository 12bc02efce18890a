-- pin: whether gc must leave this checkpoint alone.
UPDATE perdure.checkpoints SET pinned = (%(pinned)s::int <> 0)
WHERE task_uid = %(uid)s::text AND seq = %(target)s::bigint
RETURNING seq;
