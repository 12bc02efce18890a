-- transaction: the number of our transaction; NULL until it has written something.
SELECT pg_catalog.txid_current_if_assigned()
