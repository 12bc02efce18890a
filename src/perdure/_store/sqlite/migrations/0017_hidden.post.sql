-- 0017_hidden.post: tasks_shown, tasks_moved and their twins take their place.

DROP INDEX tasks_listed;
DROP INDEX tasks_archived;
DROP INDEX tasks_archived_changed;
DROP INDEX tasks_changed;
