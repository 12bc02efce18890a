-- read_children: finished tasks started by an unfinished one, which may still ask for their results.
SELECT calls.task_uid
FROM perdure.calls
JOIN perdure.tasks AS child ON child.uid = calls.task_uid
JOIN perdure.tasks AS parent ON parent.uid = calls.parent_uid
WHERE child.namespace = %(namespace)s::text AND child.status IN ('completed', 'failed', 'cancelled')
  AND parent.status NOT IN ('completed', 'failed', 'cancelled');
