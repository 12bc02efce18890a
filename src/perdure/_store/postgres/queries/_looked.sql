-- OFFSET 0 keeps the order of the rows: each is found by its key, one after the other.
CROSS JOIN LATERAL (SELECT * FROM perdure.tasks WHERE tasks.uid = looked.uid OFFSET 0) AS tasks
LEFT JOIN LATERAL (SELECT function, version, queue, parent_uid FROM perdure.calls
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
