-- start_function: add a task that carries out a durable function, if its id is free. With a worker, the task begins
-- with that worker's lease and first attempt: one write instead of two.
--> start
--> event
SELECT uid FROM changed;
