-- take_slot: take a slot of a limit, if its row is still as the caller saw it (or still missing).
INSERT INTO slots (scope, n, task_uid, epoch, worker, until)
VALUES (:scope, :n, :uid, :epoch, :worker, :until)
ON CONFLICT (scope, n) DO UPDATE
  SET task_uid = :uid, epoch = :epoch, worker = :worker, until = :until
  WHERE slots.task_uid = :seen_uid AND slots.epoch = :seen_epoch AND slots.worker = :seen_worker
    AND slots.until = :seen_until
RETURNING n;
