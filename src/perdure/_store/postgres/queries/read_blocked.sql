-- read_blocked: tasks that have not begun because they depend on others, with how each of those stands.
SELECT blocked.uid, blocked.id, blocked.config, wanted.value, other.status
FROM (SELECT uid, namespace, id, config, depends_on FROM perdure.tasks
      WHERE namespace = %(namespace)s::text AND status = 'pending' AND uid > %(after)s::text AND is_current
        AND depends_on <> '[]'
      ORDER BY uid LIMIT %(limit)s::bigint) AS blocked
CROSS JOIN LATERAL jsonb_array_elements_text(blocked.depends_on::jsonb) AS wanted (value)
LEFT JOIN perdure.tasks AS other
  ON other.namespace = blocked.namespace AND other.id = wanted.value AND other.is_current
ORDER BY blocked.uid, wanted.value COLLATE "C";
