-- forget_worker: delete the row of a process that has ended and holds no lease.
DELETE FROM perdure.workers
WHERE id = %(worker)s::text AND NOT EXISTS (SELECT 1 FROM perdure.leases WHERE leases.worker = %(worker)s::text)
RETURNING id;
