-- read_attempts: who has worked on a task, in order.
SELECT number, worker, host, pid, user, agent, started_at, ended_at, ended
FROM attempts WHERE task_uid = :uid ORDER BY number;
