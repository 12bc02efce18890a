-- old_transactions: sessions with a transaction open for longer than this in this database. Rows deleted since it began
-- cannot be removed, so tables grow. Without pg_read_all_stats only the existence of other users' sessions is visible.
SELECT pid::bigint, coalesce(usename, '?')::text, coalesce(application_name, '')::text,
       coalesce(host(client_addr), 'a local socket')::text, coalesce(state, '?')::text,
       (extract(epoch FROM clock_timestamp() - xact_start) * 1000)::bigint
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
  AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL OR state LIKE 'idle in transaction%%')
  AND xact_start < clock_timestamp() - %(longer_ms)s::bigint * interval '1 millisecond'
ORDER BY xact_start;
