-- has_checksums: tells if the server detects flipped bits in its pages.
SELECT (current_setting('data_checksums') = 'on')::int::bigint;
