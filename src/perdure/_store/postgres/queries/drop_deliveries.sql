-- drop_deliveries: delete some of a webhook's messages that were made before a moment. `uid` is the
-- namespace.
DELETE FROM perdure.hook_deliveries WHERE id = ANY (ARRAY(
  SELECT id FROM perdure.hook_deliveries
  WHERE namespace = %(uid)s::text AND webhook = %(webhook)s::text AND id < %(before)s::text
  ORDER BY id LIMIT 500))
RETURNING webhook;
