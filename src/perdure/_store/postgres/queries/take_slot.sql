-- take_slot: take a slot of a limit, if its row is still as the caller saw it (or still missing).
INSERT INTO perdure.slots (scope, n, task_uid, epoch, worker, until)
VALUES (%(scope)s::text, %(n)s::bigint, %(uid)s::text, %(epoch)s::bigint, %(worker)s::text, %(until)s::bigint)
ON CONFLICT (scope, n) DO UPDATE
  SET task_uid = %(uid)s::text, epoch = %(epoch)s::bigint, worker = %(worker)s::text, until = %(until)s::bigint
  WHERE slots.task_uid = %(seen_uid)s::text AND slots.epoch = %(seen_epoch)s::bigint
    AND slots.worker = %(seen_worker)s::text AND slots.until = %(seen_until)s::bigint
RETURNING n;
