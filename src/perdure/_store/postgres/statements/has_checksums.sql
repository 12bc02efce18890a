-- has_checksums: whether the server finds flipped bits in its pages.
SELECT (current_setting('data_checksums') = 'on')::int::bigint;
