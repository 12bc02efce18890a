-- forget_worker: the row of a process that has ended and holds nothing.
DELETE FROM perdure.workers
WHERE id = %(worker)s::text AND NOT EXISTS (SELECT 1 FROM perdure.leases WHERE leases.worker = %(worker)s::text)
RETURNING id;
