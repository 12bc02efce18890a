-- drop_deliveries: delete some of a webhook's messages that were made before a moment. `uid` is the
-- namespace.
DELETE FROM hook_deliveries WHERE id IN (
  SELECT id FROM hook_deliveries WHERE namespace = :uid AND webhook = :webhook AND id < :before
  ORDER BY id LIMIT 500)
RETURNING webhook;
