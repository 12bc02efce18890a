-- record_memory: store one value under a key with the journal entry that records it, only while the lease is still
-- ours. The entry is written in any case: `entry` if the value was stored, `refused` if the version is no longer `seen`
-- (as for put_memory). Answers with the position and the new version, 0 if the value was refused.
--> fence
free AS (
  SELECT 1 FROM fence WHERE NOT EXISTS (
    SELECT 1 FROM perdure.journal
    WHERE task_uid = %(uid)s::text AND line = %(line)s::bigint AND position = %(position)s::bigint)
),
kept AS (
  INSERT INTO perdure.memory (namespace, life, key, owner, version, at, expires_at, value)
  SELECT %(namespace)s::text, '', %(key)s::text, %(owner)s::text, 1, %(at)s::bigint, %(expires_at)s::bigint,
         %(value)s::bytea
  FROM free
  WHERE COALESCE(%(seen)s::bigint, 0) = 0 OR EXISTS (
          SELECT 1 FROM perdure.memory
          WHERE namespace = %(namespace)s::text AND life = '' AND key = %(key)s::text)
  ON CONFLICT (namespace, life, key) DO UPDATE
  SET value = excluded.value, owner = excluded.owner, version = memory.version + 1, at = excluded.at,
      expires_at = excluded.expires_at
  WHERE %(seen)s::bigint IS NULL OR memory.version = %(seen)s::bigint
     OR (%(seen)s::bigint = 0 AND memory.expires_at <= %(at)s::bigint)
  RETURNING version
),
added AS (
  INSERT INTO perdure.journal (task_uid, line, position, entry)
  SELECT %(uid)s::text, %(line)s::bigint, %(position)s::bigint,
         CASE WHEN EXISTS (SELECT 1 FROM kept) THEN %(entry)s::bytea ELSE %(refused)s::bytea END
  FROM free
  RETURNING task_uid, line, position
),
journal_end AS (
  INSERT INTO perdure.journal_ends (task_uid, line, position) SELECT task_uid, line, position FROM added
  ON CONFLICT (task_uid) DO UPDATE SET line = excluded.line, position = excluded.position
  WHERE (excluded.line, excluded.position) > (journal_ends.line, journal_ends.position)
),
answered AS (
  SELECT position, COALESCE((SELECT version FROM kept), 0) AS version FROM added
)
SELECT position, version FROM answered;
