-- newest_batch: the number of our last committed batch, and its answer if it was one write. The row is written, not
-- only read, because the lost connection's transaction can still be about to commit. That transaction has locked or
-- inserted this row, so this statement waits until it has ended. A batch that reaches the server later finds a number
-- below zero, and fails: see begin_batch.
INSERT INTO perdure.committers (id, batch, at)
SELECT %(committer)s::text, -1, (extract(epoch FROM now()) * 1000)::bigint
FROM (SELECT set_config('lock_timeout', %(lock_ms)s::text, true) OFFSET 0) AS settings
ON CONFLICT (id) DO UPDATE SET batch = least(committers.batch, -1 - committers.batch), at = excluded.at
RETURNING -1 - batch, answer;
