-- write_memory: store many values and delete others: all of them or none. `rows` is a JSON list; `seen` of a row is as
-- for put_memory, and its value lies in `contents` from `start` on, `size` bytes long; a key without a size is deleted.
-- With an epoch, only while that lease is ours. The answer is each row's version; for a deleted key, its last one. A
-- key that another session adds meanwhile cannot be locked. Its value is then NULL, which is an error, and the batch is
-- sent again.
--> fence
asked AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS row (
    n bigint, key text COLLATE "C", owner text, expires_at bigint, seen bigint, start integer, size integer)
),
locked AS MATERIALIZED (
  SELECT memory.key, memory.version, memory.expires_at FROM perdure.memory
  WHERE namespace = %(namespace)s::text AND life = '' AND key IN (SELECT asked.key FROM asked)
  ORDER BY memory.key FOR UPDATE
),
allowed AS MATERIALIZED (
  SELECT 1
  WHERE (%(epoch)s::bigint IS NULL OR EXISTS (SELECT 1 FROM fence))
    AND NOT EXISTS (
      SELECT 1 FROM asked LEFT JOIN locked USING (key)
      WHERE asked.seen <> COALESCE(locked.version, 0)
        AND NOT (asked.seen = 0 AND COALESCE(locked.expires_at <= %(at)s::bigint, false)))
),
kept AS (
  INSERT INTO perdure.memory (namespace, life, key, owner, version, at, expires_at, value)
  SELECT %(namespace)s::text, '', asked.key, asked.owner, COALESCE(locked.version, 0) + 1, %(at)s::bigint,
         asked.expires_at, substring(%(contents)s::bytea FROM asked.start FOR asked.size)
  FROM allowed CROSS JOIN asked LEFT JOIN locked USING (key)
  WHERE asked.size IS NOT NULL ORDER BY asked.key
  ON CONFLICT (namespace, life, key) DO UPDATE
  SET value = CASE WHEN memory.version + 1 = excluded.version THEN excluded.value END, owner = excluded.owner,
      version = excluded.version, at = excluded.at, expires_at = excluded.expires_at
),
forgotten AS (
  DELETE FROM perdure.memory USING asked, allowed
  WHERE namespace = %(namespace)s::text AND life = '' AND memory.key = asked.key AND asked.size IS NULL
),
answered AS (
  SELECT array_to_json(array_agg(
           COALESCE(locked.version, 0) + CASE WHEN asked.size IS NULL THEN 0 ELSE 1 END ORDER BY asked.n))::text AS versions
  FROM asked LEFT JOIN locked USING (key)
  HAVING EXISTS (SELECT 1 FROM allowed)
)
SELECT versions FROM answered;
