-- read_blocked: tasks that have not begun because they depend on others, with how each of those stands; if `settled`,
-- only those about which something is to be done: all have completed, or one has ended otherwise.
SELECT blocked.uid, blocked.id, blocked.config, wanted.value, other.status
FROM (SELECT uid, namespace, id, config, depends_on FROM perdure.tasks
      WHERE namespace = %(namespace)s::text AND status = 'pending' AND uid > %(after)s::text AND is_current
        AND depends_on <> '[]'
        AND (%(settled)s::int = 0
             OR NOT EXISTS (
               SELECT 1 FROM jsonb_array_elements_text(tasks.depends_on::jsonb) AS wanted (value)
               LEFT JOIN perdure.tasks AS other
                 ON other.namespace = tasks.namespace AND other.id = wanted.value AND other.is_current
               WHERE other.status IS DISTINCT FROM 'completed')
             OR EXISTS (
               SELECT 1 FROM jsonb_array_elements_text(tasks.depends_on::jsonb) AS wanted (value)
               JOIN perdure.tasks AS other
                 ON other.namespace = tasks.namespace AND other.id = wanted.value AND other.is_current
               WHERE other.status IN ('failed', 'cancelled')))
      ORDER BY uid LIMIT %(limit)s::bigint) AS blocked
CROSS JOIN LATERAL jsonb_array_elements_text(blocked.depends_on::jsonb) AS wanted (value)
LEFT JOIN perdure.tasks AS other
  ON other.namespace = blocked.namespace AND other.id = wanted.value AND other.is_current
ORDER BY blocked.uid, wanted.value COLLATE "C";
