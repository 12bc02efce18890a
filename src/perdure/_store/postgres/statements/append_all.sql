-- append_all: append_entries, or an error when one of them is refused: so that COMMIT can follow unseen.
--> append
SELECT 1 / (count(*) = cardinality(%(uid)s::text[]))::int FROM added;
