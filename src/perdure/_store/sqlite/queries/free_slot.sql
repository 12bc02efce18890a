-- free_slot: delete a slot that is no longer needed, if it is still the one that was taken.
DELETE FROM slots
WHERE scope = :scope AND n = :n AND task_uid = :uid AND epoch = :epoch AND worker = :worker
RETURNING n;
