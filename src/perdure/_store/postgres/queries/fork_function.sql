-- fork_function: add a task that carries on a durable function from another task's entries, if its id is free. The
-- entries come with it, as pairs of a position and hexadecimal digits: either all of them are written, or no task is
-- added.
--> start
--> entries
--> event
SELECT uid FROM changed;
