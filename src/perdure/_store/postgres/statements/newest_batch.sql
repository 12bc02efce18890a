-- newest_batch: the last batch of ours that was committed, and what it answered if it was one write.
-- Touching the row, not only reading it, is the point: the lost connection's transaction may still be
-- about to commit. It holds this row, or has it inserted, so that this waits until it has ended. One that is
-- still on its way to the server finds a number below zero, and fails: see begin_batch.
INSERT INTO perdure.committers (id, batch, at)
SELECT %(committer)s::text, -1, (extract(epoch FROM now()) * 1000)::bigint
FROM (SELECT set_config('lock_timeout', %(lock_ms)s::text, true) OFFSET 0) AS settings
ON CONFLICT (id) DO UPDATE SET batch = least(committers.batch, -1 - committers.batch), at = excluded.at
RETURNING -1 - batch, answer;
