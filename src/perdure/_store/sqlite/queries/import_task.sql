-- import_task: add a task with all its rows, as another store exported them, if its id and its uid are both unknown
-- here. Each parameter is a JSON list of one table's rows, in the form of dump_task.
INSERT INTO tasks (
  uid, namespace, id, is_current, status, version, line, seq, state_seq, name, description, agent, tags,
  config, depends_on, pause_reason, pause, due_at, progress, result, error, attempts, event_count, event_head,
  created_at, started_at, updated_at, finished_at, archived_at)
SELECT
  value ->> 'uid', value ->> 'namespace', value ->> 'id', value ->> 'is_current', value ->> 'status',
  value ->> 'version', value ->> 'line', value ->> 'seq', value ->> 'state_seq', value ->> 'name',
  value ->> 'description', value ->> 'agent', value ->> 'tags', unhex(substr(value ->> 'config', 3)),
  value ->> 'depends_on', value ->> 'pause_reason', unhex(substr(value ->> 'pause', 3)), value ->> 'due_at',
  unhex(substr(value ->> 'progress', 3)), unhex(substr(value ->> 'result', 3)),
  unhex(substr(value ->> 'error', 3)), value ->> 'attempts', value ->> 'event_count',
  unhex(substr(value ->> 'event_head', 3)), value ->> 'created_at', value ->> 'started_at',
  value ->> 'updated_at', value ->> 'finished_at', value ->> 'archived_at'
FROM json_each(:tasks) WHERE true
ON CONFLICT DO NOTHING
RETURNING uid;
INSERT INTO checkpoints (
  task_uid, seq, line, parent, base, at, label, cause, depth, author, size, stored, chain_size, chain_length,
  position, valid, superseded, pinned, chunks, frame)
SELECT
  value ->> 'task_uid', value ->> 'seq', value ->> 'line', value ->> 'parent', value ->> 'base',
  value ->> 'at', value ->> 'label', value ->> 'cause', value ->> 'depth', value ->> 'author',
  value ->> 'size', value ->> 'stored', value ->> 'chain_size', value ->> 'chain_length', value ->> 'position',
  value ->> 'valid', value ->> 'superseded', value ->> 'pinned', value ->> 'chunks',
  unhex(substr(value ->> 'frame', 3))
FROM json_each(:checkpoints) WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO chunks (
  task_uid, owner, n, body)
SELECT
  value ->> 'task_uid', value ->> 'owner', value ->> 'n', unhex(substr(value ->> 'body', 3))
FROM json_each(:chunks) WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO attempts (
  task_uid, number, worker, host, pid, user, agent, started_at, ended_at, ended)
SELECT
  value ->> 'task_uid', value ->> 'number', value ->> 'worker', value ->> 'host', value ->> 'pid',
  value ->> 'user', value ->> 'agent', value ->> 'started_at', value ->> 'ended_at', value ->> 'ended'
FROM json_each(:attempts) WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO events (
  task_uid, number, at, kind, author, body, digest, hash)
SELECT
  value ->> 'task_uid', value ->> 'number', value ->> 'at', value ->> 'kind', value ->> 'author',
  unhex(substr(value ->> 'body', 3)), unhex(substr(value ->> 'digest', 3)), unhex(substr(value ->> 'hash', 3))
FROM json_each(:events) WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO journal (
  task_uid, line, position, entry)
SELECT
  value ->> 'task_uid', value ->> 'line', value ->> 'position', unhex(substr(value ->> 'entry', 3))
FROM json_each(:journal) WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO calls (
  task_uid, function, version, arguments, queue, priority, parent_uid, budget, key, not_before, deadline_at,
  losses, lost_position)
SELECT
  value ->> 'task_uid', value ->> 'function', value ->> 'version', unhex(substr(value ->> 'arguments', 3)),
  value ->> 'queue', value ->> 'priority', value ->> 'parent_uid', unhex(substr(value ->> 'budget', 3)),
  value ->> 'key', value ->> 'not_before', value ->> 'deadline_at', value ->> 'losses',
  value ->> 'lost_position'
FROM json_each(:calls) WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO pauses (
  task_uid, path, reason, topic, question, asked_at, due_at, answer, answered_at, answered_by,
  expires_at)
SELECT
  value ->> 'task_uid', value ->> 'path', value ->> 'reason', value ->> 'topic',
  unhex(substr(value ->> 'question', 3)), value ->> 'asked_at', value ->> 'due_at',
  unhex(substr(value ->> 'answer', 3)), value ->> 'answered_at', value ->> 'answered_by',
  value ->> 'expires_at'
FROM json_each(:pauses) WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO signals (
  task_uid, name, number, value, sent_at, sent_by, taken_by, once)
SELECT
  value ->> 'task_uid', value ->> 'name', value ->> 'number', unhex(substr(value ->> 'value', 3)),
  value ->> 'sent_at', value ->> 'sent_by', value ->> 'taken_by', value ->> 'once'
FROM json_each(:signals) WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO shelf (
  owner, kind, key, version, due_at, changed_at, author, value)
SELECT
  value ->> 'owner', value ->> 'kind', value ->> 'key', value ->> 'version', value ->> 'due_at',
  value ->> 'changed_at', value ->> 'author', unhex(substr(value ->> 'value', 3))
FROM json_each(:shelf) WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO deliveries (
  task_uid, handler, delivered)
SELECT
  value ->> 'task_uid', value ->> 'handler', value ->> 'delivered'
FROM json_each(:deliveries) WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO leases (
  task_uid, epoch, worker, taken_at)
SELECT
  value ->> 'task_uid', value ->> 'epoch', value ->> 'worker', value ->> 'taken_at'
FROM json_each(:leases) WHERE true
ON CONFLICT DO NOTHING;
INSERT INTO memory (
  namespace, life, key, owner, version, at, expires_at, value)
SELECT
  value ->> 'namespace', value ->> 'life', value ->> 'key', value ->> 'owner', value ->> 'version',
  value ->> 'at', value ->> 'expires_at', unhex(substr(value ->> 'value', 3))
FROM json_each(:memory) WHERE true
ON CONFLICT DO NOTHING;
