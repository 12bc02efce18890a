-- note_rate_limit: record that a provider has asked us to slow down. Hits less than quiet_ms apart count as hits in a
-- row.
INSERT INTO perdure.rate_limits AS known (namespace, provider, hits, streak, reset_at, hit_at)
VALUES (%(namespace)s::text, %(provider)s::text, 1, 1, %(reset_at)s::bigint, %(at)s::bigint)
ON CONFLICT (namespace, provider) DO UPDATE
SET hits = known.hits + 1,
    streak = CASE WHEN %(at)s::bigint - known.hit_at > %(quiet_ms)s::bigint THEN 1 ELSE known.streak + 1 END,
    reset_at = GREATEST(known.reset_at, excluded.reset_at), hit_at = %(at)s::bigint
RETURNING hits, streak, reset_at;
