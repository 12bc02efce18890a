-- stand_down: an attempt that lost its lease says that nothing of it runs any more. It needs no lease to say so.
UPDATE attempts SET ended = ended || :stopped
WHERE task_uid = :uid AND number = :epoch AND worker = :worker AND ended_at IS NOT NULL
  AND substr(ended, -length(:stopped)) <> :stopped
RETURNING number;
