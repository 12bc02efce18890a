       tasks.uid, tasks.id, tasks.status, tasks.version, tasks.name, tasks.agent, tasks.tags, tasks.pause_reason,
       CASE WHEN tasks.due_at IS NOT NULL THEN tasks.due_at
            WHEN tasks.status IN ('pending', 'running', 'paused')
            THEN (SELECT min(pauses.due_at) FROM pauses WHERE pauses.task_uid = tasks.uid AND pauses.answer IS NULL)
       END AS due_at,
       tasks.progress, tasks.attempts, tasks.created_at, tasks.started_at, tasks.updated_at, tasks.finished_at,
       tasks.archived_at, tasks.hidden, calls.function, calls.version AS function_version, calls.queue
