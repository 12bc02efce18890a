-- forget_worker: the row of a process that has ended and holds nothing.
DELETE FROM workers
WHERE id = :worker AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.worker = :worker)
RETURNING id;
