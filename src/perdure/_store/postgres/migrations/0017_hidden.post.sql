-- 0017_hidden.post: tasks_shown, tasks_moved and their twins take their place.

DROP INDEX perdure.tasks_listed;
DROP INDEX perdure.tasks_archived;
DROP INDEX perdure.tasks_archived_changed;
DROP INDEX perdure.tasks_changed;
