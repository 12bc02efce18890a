-- read_time: milliseconds since 1970, by the store's own clock.
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER);
