-- restart_task: turn a finished task into history and give its id to a new one, in one write. Memory values of the old
-- task stay with it. A uid in use is refused, and so is an id other than the old task's.
UPDATE tasks SET is_current = 0
WHERE uid = :old AND namespace = :namespace AND id = :id AND is_current
  AND status IN ('completed', 'failed', 'cancelled') AND NOT EXISTS (SELECT 1 FROM tasks WHERE uid = :uid)
RETURNING uid;
UPDATE memory SET life = :old WHERE namespace = :namespace AND owner = :id AND life = '';
INSERT INTO tasks (uid, namespace, id, status, name, description, agent, tags, config, depends_on,
                   event_count, event_head, created_at, updated_at)
VALUES (:uid, :namespace, :id, :status, :name, :description, :agent, :tags, :config, :depends_on,
        1, :head, :at, :at);
--> first_rows
--> first_event
