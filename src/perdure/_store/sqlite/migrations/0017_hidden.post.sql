-- 0017_hidden.post: drop the indexes that tasks_shown, tasks_moved and their twins replace.

DROP INDEX tasks_listed;
DROP INDEX tasks_archived;
DROP INDEX tasks_archived_changed;
DROP INDEX tasks_changed;
