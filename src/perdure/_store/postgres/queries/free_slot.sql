-- free_slot: a slot nobody needs any more is gone, if it is still the one that was taken.
DELETE FROM perdure.slots
WHERE scope = %(scope)s::text AND n = %(n)s::bigint AND task_uid = %(uid)s::text AND epoch = %(epoch)s::bigint
  AND worker = %(worker)s::text
RETURNING n;
