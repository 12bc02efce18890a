-- stand_down: an attempt that lost its lease says that nothing of it runs any more. It needs no lease to say so.
UPDATE perdure.attempts SET ended = ended || %(stopped)s::text
WHERE task_uid = %(uid)s::text AND number = %(epoch)s::bigint AND worker = %(worker)s::text AND ended_at IS NOT NULL
  AND right(ended, length(%(stopped)s::text)) <> %(stopped)s::text
RETURNING number;
