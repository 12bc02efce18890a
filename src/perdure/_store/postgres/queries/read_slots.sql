-- read_slots: the slots of these limits, with the holder of the lease that each was taken for, and if that holder is
-- registered.
SELECT slots.scope, slots.n, slots.task_uid, slots.epoch, slots.worker, slots.until, leases.epoch, leases.worker,
       EXISTS (SELECT 1 FROM perdure.workers WHERE workers.id = slots.worker)
FROM perdure.slots LEFT JOIN perdure.leases ON leases.task_uid = slots.task_uid
WHERE slots.scope IN (SELECT jsonb_array_elements_text(%(scopes)s::jsonb)) ORDER BY slots.scope, slots.n;
