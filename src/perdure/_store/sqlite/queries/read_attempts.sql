-- read_attempts: the attempts at a task and their workers, in order.
SELECT number, worker, host, pid, user, agent, started_at, ended_at, ended
FROM attempts WHERE task_uid = :uid ORDER BY number;
