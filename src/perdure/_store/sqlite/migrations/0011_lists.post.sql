-- 0011_lists.post: drop the index that tasks_listed replaces.

DROP INDEX tasks_by_status;
