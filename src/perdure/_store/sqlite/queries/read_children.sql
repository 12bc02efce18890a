-- read_children: finished tasks started by an unfinished one, which may still ask for their results.
SELECT calls.task_uid
FROM calls JOIN tasks AS child ON child.uid = calls.task_uid JOIN tasks AS parent ON parent.uid = calls.parent_uid
WHERE child.namespace = :namespace AND child.status IN ('completed', 'failed', 'cancelled')
  AND parent.status NOT IN ('completed', 'failed', 'cancelled');
