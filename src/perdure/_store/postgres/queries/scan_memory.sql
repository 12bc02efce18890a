-- scan_memory: what is kept under the keys from one on and below another, in their order.
SELECT key, version, value FROM perdure.memory
WHERE namespace = %(namespace)s::text AND life = '' AND key >= %(first)s::text AND key < %(below)s::text
  AND (expires_at IS NULL OR expires_at > %(now)s::bigint)
ORDER BY key LIMIT %(limit)s::bigint;
