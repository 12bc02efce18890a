      tasks.namespace = %(namespace)s::text AND tasks.status = 'paused'
  AND tasks.pause_reason IN ('human_approval', 'human_input') AND tasks.is_current
  AND NOT (COALESCE((SELECT ended FROM perdure.attempts WHERE task_uid = tasks.uid ORDER BY number DESC LIMIT 1), '') = 'paused'
           AND EXISTS (SELECT 1 FROM perdure.pauses
                       WHERE task_uid = tasks.uid AND answer IS NULL AND reason = tasks.pause_reason))
