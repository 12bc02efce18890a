-- stand_down: record that nothing of an attempt runs any more, after it has lost its lease. This write needs no lease.
UPDATE attempts SET ended = ended || :stopped
WHERE task_uid = :uid AND number = :epoch AND worker = :worker AND ended_at IS NOT NULL
  AND substr(ended, -length(:stopped)) <> :stopped
RETURNING number;
