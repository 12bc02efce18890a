-- drop_webhook: delete a webhook and its messages, unless it was changed since it was read. `uid` is the namespace.
WITH gone AS (
  DELETE FROM perdure.webhooks WHERE namespace = %(uid)s::text AND id = %(id)s::text AND version = %(version)s::bigint
  RETURNING id
),
no_deliveries AS (
  DELETE FROM perdure.hook_deliveries
  WHERE namespace = %(uid)s::text AND webhook = %(id)s::text AND EXISTS (SELECT 1 FROM gone)
)
SELECT id FROM gone;
