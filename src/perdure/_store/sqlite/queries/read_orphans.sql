-- read_orphans: chunks written long ago whose row was never written, with the present holder of the lease. An owner's
-- name begins with its time, so `before` is a moment.
SELECT chunks.task_uid, chunks.owner, count(*), sum(length(chunks.body)), leases.worker, leases.taken_at
FROM chunks LEFT JOIN leases ON leases.task_uid = chunks.task_uid
WHERE chunks.owner < :before
  AND NOT EXISTS (SELECT 1 FROM checkpoints AS named
                  WHERE named.task_uid = chunks.task_uid AND named.chunks > 0
                    AND named.frame = CAST(chunks.owner AS BLOB))
GROUP BY chunks.task_uid, chunks.owner, leases.worker, leases.taken_at
ORDER BY chunks.task_uid, chunks.owner;
