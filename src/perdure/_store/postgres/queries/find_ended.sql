-- find_ended: which of these ids belong to ended tasks.
SELECT id FROM perdure.tasks
WHERE namespace = %(namespace)s::text AND id IN (SELECT jsonb_array_elements_text(%(ids)s::jsonb)) AND is_current
  AND status IN ('completed', 'failed', 'cancelled')
ORDER BY id COLLATE "C";
