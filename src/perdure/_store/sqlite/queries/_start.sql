INSERT INTO tasks (uid, namespace, id, status, name, description, agent, tags, config, depends_on,
                   attempts, started_at, event_count, created_at, updated_at, event_head)
VALUES (:uid, :namespace, :id, :status, :name, :description, :agent, :tags, :config, :depends_on,
        :worker NOTNULL, iif(:worker NOTNULL, :at, NULL), 1, :at, :at, :head)
ON CONFLICT DO NOTHING;
INSERT INTO leases (task_uid, epoch, worker, taken_at)
VALUES (:uid, :worker NOTNULL, :worker, iif(:worker NOTNULL, :at, NULL));
--? worker
INSERT INTO attempts (task_uid, number, worker, host, pid, user, agent, started_at)
VALUES (:uid, 1, :worker, :host, :pid, :user, :agent, :at);
--> first_state
INSERT INTO calls (task_uid, function, version, arguments, queue, priority, parent_uid, budget, key,
                   not_before, deadline_at)
VALUES (:uid, :function, :function_version, :arguments, :queue, :priority, :parent_uid, :budget, :call_key,
        :not_before, :deadline_at);
