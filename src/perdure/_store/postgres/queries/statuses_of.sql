-- statuses_of: the statuses of the tasks with these ids.
SELECT id, status FROM perdure.tasks
WHERE namespace = %(namespace)s::text AND id = ANY (ARRAY(SELECT json_array_elements_text(%(ids)s::json))) AND is_current
ORDER BY id;
