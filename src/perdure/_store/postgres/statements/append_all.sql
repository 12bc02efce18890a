-- append_all: append_entries, but with an error when one of them is refused, so that COMMIT can be sent without waiting
-- for the answer.
--> append
SELECT 1 / (count(*) = cardinality(%(uid)s::text[]))::int FROM added;
