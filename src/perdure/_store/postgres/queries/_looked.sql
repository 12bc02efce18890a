-- OFFSET 0 keeps the order of the rows: each is found by its key, one after the other.
CROSS JOIN LATERAL (SELECT * FROM perdure.tasks WHERE tasks.uid = looked.uid OFFSET 0) AS tasks
LEFT JOIN LATERAL (SELECT function, version, queue, parent_uid, not_before FROM perdure.calls
                   WHERE calls.task_uid = looked.uid OFFSET 0) AS calls ON true
WHERE tasks.namespace = %(namespace)s::text AND tasks.is_current
  AND (%(archived)s::int <> 0 OR tasks.archived_at IS NULL)
  AND (%(hidden)s::int <> 0 OR tasks.hidden = 0)
  AND (%(statuses)s::text IS NULL OR tasks.status = ANY (ARRAY(SELECT json_array_elements_text(%(statuses)s::text::json))))
  AND (%(reasons)s::text IS NULL OR tasks.pause_reason = ANY (ARRAY(SELECT json_array_elements_text(%(reasons)s::text::json))))
  AND (%(function)s::text IS NULL OR calls.function = %(function)s::text)
  AND (%(version)s::bigint IS NULL OR calls.version = %(version)s::bigint)
  AND (%(queue)s::text IS NULL OR calls.queue = %(queue)s::text)
  AND (%(agent)s::text IS NULL OR tasks.agent = %(agent)s::text)
  AND (%(parent)s::text IS NULL OR calls.parent_uid = %(parent)s::text)
  AND (%(since)s::bigint IS NULL OR tasks.created_at >= %(since)s::bigint)
  AND (%(until)s::bigint IS NULL OR tasks.created_at < %(until)s::bigint)
  AND (%(changed_since)s::bigint IS NULL OR tasks.updated_at >= %(changed_since)s::bigint)
  AND (%(id_from)s::text IS NULL OR (tasks.id >= %(id_from)s::text AND tasks.id < %(id_to)s::text))
  AND (%(not_from)s::text IS NULL OR tasks.id < %(not_from)s::text OR tasks.id >= %(not_to)s::text)
  AND (%(text)s::text IS NULL OR strpos(lower(tasks.id COLLATE "C"), %(text)s::text) > 0
       OR strpos(lower(tasks.name COLLATE "C"), %(text)s::text) > 0)
  AND (%(tags)s::text = '{}' OR tasks.tags::jsonb @> %(tags)s::text::jsonb)
  AND (%(marks)s::text IS NULL
    OR strpos(%(marks)s::text, 'ended') > 0 AND tasks.status NOT IN ('pending', 'running', 'paused')
    OR strpos(%(marks)s::text, 'paused') > 0 AND tasks.status = 'paused'
    OR strpos(%(marks)s::text, 'called') > 0 AND calls.function IS NOT NULL AND tasks.status <> 'paused'
    OR strpos(%(marks)s::text, 'plain') > 0 AND calls.function IS NULL AND tasks.status <> 'paused'
    OR strpos(%(marks)s::text, 'later') > 0 AND calls.not_before IS NOT NULL
    OR strpos(%(marks)s::text, 'needing') > 0 AND tasks.started_at IS NULL AND tasks.depends_on <> '[]'
    OR strpos(%(marks)s::text, 'held') > 0 AND EXISTS (
      SELECT 1 FROM perdure.leases WHERE leases.task_uid = tasks.uid AND leases.worker IS NOT NULL)
    OR strpos(%(marks)s::text, 'asking') > 0 AND (tasks.pause_reason IN ('human_approval', 'human_input') OR EXISTS (
      SELECT 1 FROM perdure.pauses WHERE pauses.task_uid = tasks.uid AND pauses.answer IS NULL
        AND pauses.reason IN ('human_approval', 'human_input')))
    OR strpos(%(marks)s::text, 'switched') > 0 AND EXISTS (
      SELECT 1 FROM perdure.switches WHERE switches.namespace = tasks.namespace AND switches.id IN ('', tasks.id) AND switches.is_on)
    OR strpos(%(marks)s::text, 'cancelling') > 0 AND EXISTS (
      SELECT 1 FROM perdure.signals WHERE signals.task_uid = tasks.uid AND signals.name = '~cancel'))
