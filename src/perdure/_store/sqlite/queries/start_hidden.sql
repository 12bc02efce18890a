-- start_hidden: as start_function, for a task that is a hidden part of its parent.
--> start
UPDATE tasks SET hidden = 1 WHERE uid = :uid;
--> first_event
