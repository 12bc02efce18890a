-- read_blocked: tasks that have not begun because they depend on others, with how each of those stands.
SELECT blocked.uid, blocked.id, blocked.config, wanted.value, other.status
FROM (SELECT uid, namespace, id, config, depends_on FROM tasks
      WHERE namespace = :namespace AND status = 'pending' AND uid > :after AND is_current AND depends_on <> '[]'
      ORDER BY uid LIMIT :limit) AS blocked
JOIN json_each(blocked.depends_on) AS wanted
LEFT JOIN tasks AS other ON other.namespace = blocked.namespace AND other.id = wanted.value AND other.is_current
ORDER BY blocked.uid, wanted.value;
