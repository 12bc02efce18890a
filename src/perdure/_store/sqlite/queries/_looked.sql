CROSS JOIN tasks ON tasks.uid = looked.uid LEFT JOIN calls ON calls.task_uid = tasks.uid
WHERE tasks.namespace = :namespace AND tasks.is_current
  AND (:archived OR tasks.archived_at IS NULL)
  AND (:hidden OR NOT tasks.hidden)
  AND (:statuses IS NULL OR tasks.status IN (SELECT value FROM json_each(:statuses)))
  AND (:reasons IS NULL OR tasks.pause_reason IN (SELECT value FROM json_each(:reasons)))
  AND (:function IS NULL OR calls.function = :function)
  AND (:version IS NULL OR calls.version = :version)
  AND (:queue IS NULL OR calls.queue = :queue)
  AND (:agent IS NULL OR tasks.agent = :agent)
  AND (:parent IS NULL OR calls.parent_uid = :parent)
  AND (:since IS NULL OR tasks.created_at >= :since)
  AND (:until IS NULL OR tasks.created_at < :until)
  AND (:changed_since IS NULL OR tasks.updated_at >= :changed_since)
  AND (:id_from IS NULL OR (tasks.id >= :id_from AND tasks.id < :id_to))
  AND (:not_from IS NULL OR tasks.id < :not_from OR tasks.id >= :not_to)
  AND (:text IS NULL OR instr(lower(tasks.id), :text) OR instr(lower(tasks.name), :text))
  AND (:tags = '{}' OR json_valid(tasks.tags) AND NOT EXISTS (
    SELECT 1 FROM json_each(:tags) AS wanted
    WHERE NOT EXISTS (SELECT 1 FROM json_each(tasks.tags) AS had
                      WHERE had.key = wanted.key AND had.value = wanted.value)))
  AND (:marks IS NULL
    OR instr(:marks, 'ended') AND tasks.status NOT IN ('pending', 'running', 'paused')
    OR instr(:marks, 'paused') AND tasks.status = 'paused'
    OR instr(:marks, 'called') AND calls.function IS NOT NULL AND tasks.status <> 'paused'
    OR instr(:marks, 'plain') AND calls.function IS NULL AND tasks.status <> 'paused'
    OR instr(:marks, 'later') AND calls.not_before IS NOT NULL
    OR instr(:marks, 'needing') AND tasks.started_at IS NULL AND tasks.depends_on <> '[]'
    OR instr(:marks, 'held') AND EXISTS (
      SELECT 1 FROM leases WHERE leases.task_uid = tasks.uid AND leases.worker IS NOT NULL)
    OR instr(:marks, 'asking') AND (tasks.pause_reason IN ('human_approval', 'human_input') OR EXISTS (
      SELECT 1 FROM pauses WHERE pauses.task_uid = tasks.uid AND pauses.answer IS NULL
        AND pauses.reason IN ('human_approval', 'human_input')))
    OR instr(:marks, 'switched') AND EXISTS (
      SELECT 1 FROM switches WHERE switches.namespace = tasks.namespace AND switches.id IN ('', tasks.id) AND switches.is_on)
    OR instr(:marks, 'cancelling') AND EXISTS (
      SELECT 1 FROM signals WHERE signals.task_uid = tasks.uid AND signals.name = '~cancel'))
