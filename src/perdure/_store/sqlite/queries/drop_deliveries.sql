-- drop_deliveries: the messages of a webhook that were made before a moment are gone, some at a time. `uid` is the
-- namespace.
DELETE FROM hook_deliveries WHERE id IN (
  SELECT id FROM hook_deliveries WHERE namespace = :uid AND webhook = :webhook AND id < :before
  ORDER BY id LIMIT 500)
RETURNING webhook;
