-- read_leases: who may write for these tasks.
SELECT task_uid, epoch, worker FROM leases WHERE task_uid IN (SELECT value FROM json_each(?));
