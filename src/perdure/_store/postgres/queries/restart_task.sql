-- restart_task: turn a finished task into history and give its id to a new one, in one write. Memory values of the old
-- task stay with it. A uid in use is refused, and so is an id other than the old task's.
WITH former AS (
  UPDATE perdure.tasks SET is_current = false
  WHERE uid = %(old)s::text AND namespace = %(namespace)s::text AND id = %(id)s::text AND is_current
    AND status IN ('completed', 'failed', 'cancelled')
    AND NOT EXISTS (SELECT 1 FROM perdure.tasks WHERE uid = %(uid)s::text)
  RETURNING uid
),
remembered AS (
  UPDATE perdure.memory SET life = former.uid FROM former
  WHERE memory.namespace = %(namespace)s::text AND memory.owner = %(id)s::text AND memory.life = ''
),
changed AS (
  INSERT INTO perdure.tasks (uid, namespace, id, status, name, description, agent, tags, config, depends_on,
                             event_count, event_head, created_at, updated_at)
  SELECT
--> new_task
  FROM former
  RETURNING uid, event_count, event_head
),
--> first_rows
--> event
SELECT uid FROM former;
