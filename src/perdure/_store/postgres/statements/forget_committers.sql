-- forget_committers: rows of processes that wrote nothing for a month. One that still lives makes its own anew.
DELETE FROM perdure.committers WHERE id IN (
  SELECT id FROM perdure.committers
  WHERE at < (extract(epoch FROM now() - interval '30 days') * 1000)::bigint
  FOR UPDATE SKIP LOCKED
);
