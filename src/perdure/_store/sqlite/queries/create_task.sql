-- create_task: add a new task with its first state, if its id is free. The unique index on current ids decides: of
-- several racing callers one inserts a row. The others get no row, and attach to the task they find.
INSERT INTO tasks (uid, namespace, id, status, name, description, agent, tags, config, depends_on,
                   event_count, event_head, created_at, updated_at)
VALUES (:uid, :namespace, :id, :status, :name, :description, :agent, :tags, :config, :depends_on,
        1, :head, :at, :at)
ON CONFLICT DO NOTHING;
--> first_rows
--> first_event
