-- read_orphans: chunks written long ago whose row was never written, with the present holder of the lease. An owner's
-- name begins with its time, so `before` is a moment.
SELECT chunks.task_uid, chunks.owner, count(*), sum(length(chunks.body)), leases.worker, leases.taken_at
FROM perdure.chunks LEFT JOIN perdure.leases ON leases.task_uid = chunks.task_uid
WHERE chunks.owner < %(before)s::text
  AND NOT EXISTS (SELECT 1 FROM perdure.checkpoints AS named
                  WHERE named.task_uid = chunks.task_uid AND named.chunks > 0
                    AND named.frame = convert_to(chunks.owner, 'UTF8'))
GROUP BY chunks.task_uid, chunks.owner, leases.worker, leases.taken_at
ORDER BY chunks.task_uid, chunks.owner;
