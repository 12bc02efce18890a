-- stand_down: record that nothing of an attempt runs any more, after it has lost its lease. This write needs no lease.
UPDATE perdure.attempts SET ended = ended || %(stopped)s::text
WHERE task_uid = %(uid)s::text AND number = %(epoch)s::bigint AND worker = %(worker)s::text AND ended_at IS NOT NULL
  AND right(ended, length(%(stopped)s::text)) <> %(stopped)s::text
RETURNING number;
