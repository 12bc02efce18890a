-- note_rate_limit: record that a provider has asked us to slow down. Hits less than quiet_ms apart count as hits in a
-- row.
INSERT INTO rate_limits (namespace, provider, hits, streak, reset_at, hit_at)
VALUES (:namespace, :provider, 1, 1, :reset_at, :at)
ON CONFLICT (namespace, provider) DO UPDATE
SET hits = hits + 1, streak = CASE WHEN :at - hit_at > :quiet_ms THEN 1 ELSE streak + 1 END,
    reset_at = COALESCE(max(reset_at, excluded.reset_at), reset_at, excluded.reset_at), hit_at = :at
RETURNING hits, streak, reset_at;
