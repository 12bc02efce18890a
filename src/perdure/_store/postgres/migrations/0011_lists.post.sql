-- 0011_lists.post: drop the index that tasks_listed replaces.

DROP INDEX perdure.tasks_by_status;
