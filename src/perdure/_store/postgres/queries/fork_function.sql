-- fork_function: a new task that carries on a durable function from another task's entries, if its id is free.
-- The entries come with it, as pairs of a position and hexadecimal digits: all of them are there, or no task is.
--> start
--> entries
--> event
SELECT uid FROM changed;
