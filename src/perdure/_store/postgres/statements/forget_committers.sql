-- forget_committers: delete the rows of processes that wrote nothing for a month. A process that still lives adds its
-- row again.
DELETE FROM perdure.committers WHERE id IN (
  SELECT id FROM perdure.committers
  WHERE at < (extract(epoch FROM now() - interval '30 days') * 1000)::bigint
  FOR UPDATE SKIP LOCKED
);
