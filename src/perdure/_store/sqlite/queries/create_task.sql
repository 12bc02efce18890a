-- create_task: a new task with its first state, if its id is free.
-- The unique index on current ids is the judge: of any number of racing callers one inserts a row,
-- and the others get none and attach to the task they find.
INSERT INTO tasks (uid, namespace, id, status, name, description, agent, tags, config, depends_on,
                   event_count, event_head, created_at, updated_at)
VALUES (:uid, :namespace, :id, :status, :name, :description, :agent, :tags, :config, :depends_on,
        1, :head, :at, :at)
ON CONFLICT DO NOTHING;
--> first_rows
--> first_event
