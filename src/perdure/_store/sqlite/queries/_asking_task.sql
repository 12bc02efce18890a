      tasks.namespace = :namespace AND tasks.status = 'paused'
  AND tasks.pause_reason IN ('human_approval', 'human_input') AND tasks.is_current
  AND NOT (COALESCE((SELECT ended FROM attempts WHERE task_uid = tasks.uid ORDER BY number DESC LIMIT 1), '') = 'paused'
           AND EXISTS (SELECT 1 FROM pauses
                       WHERE task_uid = tasks.uid AND answer IS NULL AND reason = tasks.pause_reason))
