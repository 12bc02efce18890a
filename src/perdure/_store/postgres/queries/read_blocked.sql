-- read_blocked: tasks that have not begun because they depend on others (hidden ones never do), with the status of each
-- dependency; with `settled`, only those that need a decision: all dependencies have completed, or one has ended
-- otherwise. Each dependency is looked up by itself, in the unique index. A join would be planned for the few tasks
-- that the table held at first.
SELECT blocked.uid, blocked.id, blocked.config, wanted.value,
       (SELECT other.status FROM perdure.tasks AS other
        WHERE other.namespace = blocked.namespace AND other.id = wanted.value AND other.is_current)
FROM (SELECT uid, namespace, id, config, depends_on FROM perdure.tasks
      WHERE namespace = %(namespace)s::text AND status = 'pending' AND hidden = 0 AND uid > %(after)s::text
        AND is_current AND archived_at IS NULL
        AND depends_on <> '[]'
        AND (%(settled)s::int = 0
             OR NOT EXISTS (
               SELECT 1 FROM jsonb_array_elements_text(tasks.depends_on::jsonb) AS wanted (value)
               WHERE (SELECT other.status FROM perdure.tasks AS other
                      WHERE other.namespace = tasks.namespace AND other.id = wanted.value AND other.is_current)
                     IS DISTINCT FROM 'completed')
             OR EXISTS (
               SELECT 1 FROM jsonb_array_elements_text(tasks.depends_on::jsonb) AS wanted (value)
               WHERE (SELECT other.status FROM perdure.tasks AS other
                      WHERE other.namespace = tasks.namespace AND other.id = wanted.value AND other.is_current)
                     IN ('failed', 'cancelled')))
      ORDER BY uid LIMIT %(limit)s::bigint) AS blocked
CROSS JOIN LATERAL jsonb_array_elements_text(blocked.depends_on::jsonb) AS wanted (value)
ORDER BY blocked.uid, wanted.value COLLATE "C";
