-- free_slot: delete a slot that is no longer needed, if it is still the one that was taken.
DELETE FROM perdure.slots
WHERE scope = %(scope)s::text AND n = %(n)s::bigint AND task_uid = %(uid)s::text AND epoch = %(epoch)s::bigint
  AND worker = %(worker)s::text
RETURNING n;
