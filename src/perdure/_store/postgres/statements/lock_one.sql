-- lock_one: lock the only task of a batch, and then its lease, which the batch changes.
WITH task AS MATERIALIZED (
  SELECT uid FROM perdure.tasks WHERE uid = %(id)s::text FOR NO KEY UPDATE
)
SELECT 1 FROM perdure.leases WHERE task_uid = (SELECT max(uid) FROM task) FOR UPDATE;
