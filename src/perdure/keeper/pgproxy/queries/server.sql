-- server: which server this is, and which of its backends serves us.
-- The timeline changes when a standby is promoted, the reset of its counters when a crash was recovered from: after
-- either, a transaction number may have been given out a second time.
SELECT pg_catalog.pg_backend_pid(),
       (SELECT backend_start FROM pg_catalog.pg_stat_activity WHERE pid = pg_catalog.pg_backend_pid()),
       (SELECT system_identifier FROM pg_catalog.pg_control_system()),
       CASE WHEN pg_catalog.pg_is_in_recovery() THEN ''
            ELSE pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) END,
       (SELECT stats_reset FROM pg_catalog.pg_stat_bgwriter),
       pg_catalog.txid_current_if_assigned()
