-- 0011_lists.post: tasks_listed takes its place.

DROP INDEX tasks_by_status;
