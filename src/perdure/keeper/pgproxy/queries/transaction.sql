-- transaction: the number of the transaction we are in; none as long as it has written nothing.
SELECT pg_catalog.txid_current_if_assigned()
