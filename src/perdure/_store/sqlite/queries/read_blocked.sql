-- read_blocked: tasks that have not begun because they depend on others (hidden ones never do), with the status of each
-- dependency; with `settled`, only those that need a decision: all dependencies have completed, or one has ended
-- otherwise.
SELECT blocked.uid, blocked.id, blocked.config, wanted.value, other.status
FROM (SELECT uid, namespace, id, config, depends_on FROM tasks
      WHERE namespace = :namespace AND status = 'pending' AND hidden = 0 AND uid > :after
        AND is_current AND archived_at IS NULL AND depends_on <> '[]'
        AND (NOT :settled
             OR NOT EXISTS (
               SELECT 1 FROM json_each(tasks.depends_on) AS wanted LEFT JOIN tasks AS other
                 ON other.namespace = tasks.namespace AND other.id = wanted.value AND other.is_current
               WHERE other.status IS NOT 'completed')
             OR EXISTS (
               SELECT 1 FROM json_each(tasks.depends_on) AS wanted JOIN tasks AS other
                 ON other.namespace = tasks.namespace AND other.id = wanted.value AND other.is_current
               WHERE other.status IN ('failed', 'cancelled')))
      ORDER BY uid LIMIT :limit) AS blocked
JOIN json_each(blocked.depends_on) AS wanted
LEFT JOIN tasks AS other ON other.namespace = blocked.namespace AND other.id = wanted.value AND other.is_current
ORDER BY blocked.uid, wanted.value;
