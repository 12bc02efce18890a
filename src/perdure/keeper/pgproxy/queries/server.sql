-- server: the identity of this server, and of the backend that serves us. The timeline changes when a standby is
-- promoted; the counters are reset when the server recovers from a crash. After either, a transaction number can have
-- been used twice.
SELECT pg_catalog.pg_backend_pid(),
       (SELECT backend_start FROM pg_catalog.pg_stat_activity WHERE pid = pg_catalog.pg_backend_pid()),
       (SELECT system_identifier FROM pg_catalog.pg_control_system()),
       CASE WHEN pg_catalog.pg_is_in_recovery() THEN ''
            ELSE pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) END,
       (SELECT stats_reset FROM pg_catalog.pg_stat_bgwriter),
       pg_catalog.txid_current_if_assigned()
