-- list_memory: the keys in a range, in order: its lower end is included, its upper end is not.
SELECT key, version, expires_at FROM perdure.memory
WHERE namespace = %(namespace)s::text AND life = %(life)s::text AND key >= %(first)s::text
  AND (%(below)s::text IS NULL OR key < %(below)s::text)
ORDER BY key LIMIT %(limit)s::bigint;
