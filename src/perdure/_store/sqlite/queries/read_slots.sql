-- read_slots: the slots of these limits, with the holder of the lease that each was taken for, and if that holder is
-- registered.
SELECT slots.scope, slots.n, slots.task_uid, slots.epoch, slots.worker, slots.until, leases.epoch, leases.worker,
       EXISTS (SELECT 1 FROM workers WHERE workers.id = slots.worker)
FROM slots LEFT JOIN leases ON leases.task_uid = slots.task_uid
WHERE slots.scope IN (SELECT value FROM json_each(:scopes)) ORDER BY slots.scope, slots.n;
