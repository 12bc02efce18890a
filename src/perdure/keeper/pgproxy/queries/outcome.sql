-- outcome: the outcome of a transaction: committed, aborted, in progress, or NULL when it is too long ago.
SELECT pg_catalog.txid_status($1::bigint),
       EXISTS (SELECT FROM pg_catalog.pg_prepared_xacts
               WHERE transaction::text::bigint = $1::bigint % 4294967296)
