-- list_webhooks: the webhooks of a namespace, and when the first message of each is due.
SELECT id, version, changed_at, author, record, worker, failing_since,
  (SELECT MIN(due_at) FROM perdure.hook_deliveries
   WHERE hook_deliveries.namespace = webhooks.namespace AND hook_deliveries.webhook = webhooks.id AND due_at IS NOT NULL) AS next_due
FROM perdure.webhooks WHERE namespace = %(namespace)s::text ORDER BY id;
