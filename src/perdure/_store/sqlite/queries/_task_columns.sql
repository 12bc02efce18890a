       uid, namespace, id, is_current, status, version, line, seq, state_seq, name, description, agent, tags, config,
       depends_on, pause_reason, pause, due_at, progress, result, error, attempts, event_count, event_head,
       created_at, started_at, updated_at, finished_at, archived_at, hidden
