-- drop_deliveries: the messages of a webhook that were made before a moment are gone, some at a time. `uid` is the
-- namespace.
DELETE FROM perdure.hook_deliveries WHERE id = ANY (ARRAY(
  SELECT id FROM perdure.hook_deliveries
  WHERE namespace = %(uid)s::text AND webhook = %(webhook)s::text AND id < %(before)s::text
  ORDER BY id LIMIT 500))
RETURNING webhook;
