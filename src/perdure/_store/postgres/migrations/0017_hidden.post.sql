-- 0017_hidden.post: drop the indexes that tasks_shown, tasks_moved and their twins replace.

DROP INDEX perdure.tasks_listed;
DROP INDEX perdure.tasks_archived;
DROP INDEX perdure.tasks_archived_changed;
DROP INDEX perdure.tasks_changed;
