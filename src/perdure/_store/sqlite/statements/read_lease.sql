-- read_lease: who may write for a task.
SELECT epoch, worker FROM leases WHERE task_uid = ?;
