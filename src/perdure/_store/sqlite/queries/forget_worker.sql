-- forget_worker: delete the row of a process that has ended and holds no lease.
DELETE FROM workers
WHERE id = :worker AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.worker = :worker)
RETURNING id;
