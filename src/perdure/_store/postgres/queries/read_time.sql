-- read_time: milliseconds since 1970, by the store's own clock.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
