-- begin_batch: set how this transaction waits and commits, whatever the defaults are, and record the number of our
-- batch. The settings hold for this transaction only, so a pooler can give the connection to another client afterwards.
-- They are made before the row is touched, because that can wait for a lock; OFFSET 0 keeps this order. After
-- newest_batch no batch can begin under this name: its number would be NULL, which the column refuses.
INSERT INTO perdure.committers (id, batch, at)
SELECT %(committer)s::text, %(batch)s::bigint, (extract(epoch FROM now()) * 1000)::bigint
FROM (
  SELECT set_config('synchronous_commit', 'on', true),
         set_config('lock_timeout', %(lock_ms)s::text, true),
         set_config('statement_timeout', %(statement_ms)s::text, true),
         set_config('idle_in_transaction_session_timeout', %(idle_ms)s::text, true),
         CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL
              THEN set_config('transaction_timeout', %(transaction_ms)s::text, true) END
  OFFSET 0
) AS settings
ON CONFLICT (id) DO UPDATE SET batch = CASE WHEN committers.batch >= 0 THEN excluded.batch END, at = excluded.at;
