-- dump_task: every row a task has, by table, as JSON; bytes as \x and hex digits.
SELECT 'tasks', json_object(
  'uid', uid, 'namespace', namespace, 'id', id, 'is_current', is_current, 'status', status, 'version', version,
  'line', line, 'seq', seq, 'state_seq', state_seq, 'name', name, 'description', description, 'agent', agent,
  'tags', tags, 'config', CASE WHEN config IS NULL THEN NULL ELSE '\x' || hex(config) END,
  'depends_on', depends_on, 'pause_reason', pause_reason,
  'pause', CASE WHEN pause IS NULL THEN NULL ELSE '\x' || hex(pause) END, 'due_at', due_at,
  'progress', CASE WHEN progress IS NULL THEN NULL ELSE '\x' || hex(progress) END,
  'result', CASE WHEN result IS NULL THEN NULL ELSE '\x' || hex(result) END,
  'error', CASE WHEN error IS NULL THEN NULL ELSE '\x' || hex(error) END, 'attempts', attempts,
  'event_count', event_count,
  'event_head', CASE WHEN event_head IS NULL THEN NULL ELSE '\x' || hex(event_head) END,
  'created_at', created_at, 'started_at', started_at, 'updated_at', updated_at, 'finished_at', finished_at,
  'archived_at', archived_at)
FROM tasks WHERE uid = :uid
UNION ALL
SELECT 'checkpoints', json_object(
  'task_uid', task_uid, 'seq', seq, 'line', line, 'parent', parent, 'base', base, 'at', at, 'label', label,
  'cause', cause, 'depth', depth, 'author', author, 'size', size, 'stored', stored, 'chain_size', chain_size,
  'chain_length', chain_length, 'position', position, 'valid', valid, 'superseded', superseded,
  'pinned', pinned, 'chunks', chunks, 'frame', CASE WHEN frame IS NULL THEN NULL ELSE '\x' || hex(frame) END)
FROM checkpoints WHERE task_uid = :uid
UNION ALL
SELECT 'chunks', json_object(
  'task_uid', task_uid, 'owner', owner, 'n', n,
  'body', CASE WHEN body IS NULL THEN NULL ELSE '\x' || hex(body) END)
FROM chunks WHERE task_uid = :uid
UNION ALL
SELECT 'attempts', json_object(
  'task_uid', task_uid, 'number', number, 'worker', worker, 'host', host, 'pid', pid, 'user', user,
  'agent', agent, 'started_at', started_at, 'ended_at', ended_at, 'ended', ended)
FROM attempts WHERE task_uid = :uid
UNION ALL
SELECT 'events', json_object(
  'task_uid', task_uid, 'number', number, 'at', at, 'kind', kind, 'author', author,
  'body', CASE WHEN body IS NULL THEN NULL ELSE '\x' || hex(body) END,
  'digest', CASE WHEN digest IS NULL THEN NULL ELSE '\x' || hex(digest) END,
  'hash', CASE WHEN hash IS NULL THEN NULL ELSE '\x' || hex(hash) END)
FROM events WHERE task_uid = :uid
UNION ALL
SELECT 'journal', json_object(
  'task_uid', task_uid, 'line', line, 'position', position,
  'entry', CASE WHEN entry IS NULL THEN NULL ELSE '\x' || hex(entry) END)
FROM journal WHERE task_uid = :uid
UNION ALL
SELECT 'calls', json_object(
  'task_uid', task_uid, 'function', function, 'version', version,
  'arguments', CASE WHEN arguments IS NULL THEN NULL ELSE '\x' || hex(arguments) END, 'queue', queue,
  'priority', priority, 'parent_uid', parent_uid,
  'budget', CASE WHEN budget IS NULL THEN NULL ELSE '\x' || hex(budget) END, 'key', key,
  'not_before', not_before, 'deadline_at', deadline_at, 'losses', losses, 'lost_position', lost_position)
FROM calls WHERE task_uid = :uid
UNION ALL
SELECT 'pauses', json_object(
  'task_uid', task_uid, 'path', path, 'reason', reason, 'topic', topic,
  'question', CASE WHEN question IS NULL THEN NULL ELSE '\x' || hex(question) END, 'asked_at', asked_at,
  'due_at', due_at, 'answer', CASE WHEN answer IS NULL THEN NULL ELSE '\x' || hex(answer) END,
  'answered_at', answered_at, 'answered_by', answered_by, 'expires_at', expires_at)
FROM pauses WHERE task_uid = :uid
UNION ALL
SELECT 'signals', json_object(
  'task_uid', task_uid, 'name', name, 'number', number,
  'value', CASE WHEN value IS NULL THEN NULL ELSE '\x' || hex(value) END, 'sent_at', sent_at,
  'sent_by', sent_by, 'taken_by', taken_by, 'once', once)
FROM signals WHERE task_uid = :uid
UNION ALL
SELECT 'shelf', json_object(
  'owner', owner, 'kind', kind, 'key', key, 'version', version, 'due_at', due_at, 'changed_at', changed_at,
  'author', author, 'value', CASE WHEN value IS NULL THEN NULL ELSE '\x' || hex(value) END)
FROM shelf WHERE owner = :uid
UNION ALL
SELECT 'deliveries', json_object(
  'task_uid', task_uid, 'handler', handler, 'delivered', delivered)
FROM deliveries WHERE task_uid = :uid
UNION ALL
SELECT 'leases', json_object(
  'task_uid', task_uid, 'epoch', epoch, 'worker', worker, 'taken_at', taken_at)
FROM leases WHERE task_uid = :uid
UNION ALL
SELECT 'memory', json_object(
  'namespace', namespace, 'life', life, 'key', key, 'owner', owner, 'version', version, 'at', at,
  'expires_at', expires_at, 'value', CASE WHEN value IS NULL THEN NULL ELSE '\x' || hex(value) END)
FROM memory WHERE (namespace, owner, life) = (SELECT namespace, id, CASE WHEN is_current THEN '' ELSE uid END FROM tasks WHERE uid = :uid);
