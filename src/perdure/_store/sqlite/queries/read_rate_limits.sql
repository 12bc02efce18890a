-- read_rate_limits: how often each provider has asked us to slow down, and until when.
SELECT provider, hits, streak, reset_at, hit_at FROM rate_limits WHERE namespace = :namespace ORDER BY provider;
