-- get_memories: the values under these keys, which are given as a JSON list.
SELECT key, version, value FROM perdure.memory
WHERE namespace = %(namespace)s::text AND life = ''
  AND key = ANY (ARRAY(SELECT json_array_elements_text(%(keys)s::json)))
  AND (expires_at IS NULL OR expires_at > %(now)s::bigint)
ORDER BY key;
