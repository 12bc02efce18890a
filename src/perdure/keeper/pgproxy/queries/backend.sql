-- backend: the present state of a backend of an earlier connection; no row once it has ended. A process number alone
-- could belong to another backend by now. Its transaction is shown in 32 bits; the snapshot's end tells the rest.
SELECT state,
       horizon - (horizon - backend_xid::text::bigint) % 4294967296
FROM pg_catalog.pg_stat_activity,
     (SELECT pg_catalog.txid_snapshot_xmax(pg_catalog.txid_current_snapshot()) + 2147483648 AS horizon) AS count
WHERE pid = $1::int AND backend_start = $2::timestamptz
