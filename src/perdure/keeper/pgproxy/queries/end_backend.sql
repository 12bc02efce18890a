-- end_backend: end a backend of an earlier connection; its open transaction is rolled back.
SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
WHERE pid = $1::int AND backend_start = $2::timestamptz
