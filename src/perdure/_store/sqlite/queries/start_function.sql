-- start_function: a new task that carries out a durable function, if its id is free.
INSERT INTO tasks (uid, namespace, id, status, name, description, agent, tags, config, depends_on,
                   event_count, event_head, created_at, updated_at)
VALUES (:uid, :namespace, :id, :status, :name, :description, :agent, :tags, :config, :depends_on,
        1, chain(zeroblob(32), :digest), :at, :at)
ON CONFLICT DO NOTHING
RETURNING uid;
--> first_rows
INSERT INTO calls (task_uid, function, version, arguments, queue, priority, parent_uid, budget, key,
                   not_before, deadline_at)
VALUES (:uid, :function, :function_version, :arguments, :queue, :priority, :parent_uid, :budget, :call_key,
        :not_before, :deadline_at);
--> event
