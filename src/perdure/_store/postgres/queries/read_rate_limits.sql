-- read_rate_limits: how often each provider has asked us to slow down, and until when.
SELECT provider, hits, streak, reset_at, hit_at
FROM perdure.rate_limits WHERE namespace = %(namespace)s::text ORDER BY provider;
