-- start_function: a new task that carries out a durable function, if its id is free.
-- With a worker, that one has its lease from the beginning and its first attempt begins: one write instead of two.
--> start
--> event
SELECT uid FROM changed;
