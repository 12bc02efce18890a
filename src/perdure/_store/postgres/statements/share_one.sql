-- share_one: lock the only task of a batch, and share-lock its lease, which the batch does not change.
WITH task AS MATERIALIZED (
  SELECT uid FROM perdure.tasks WHERE uid = %(id)s::text FOR NO KEY UPDATE
)
SELECT 1 FROM perdure.leases WHERE task_uid = (SELECT max(uid) FROM task) FOR SHARE;
