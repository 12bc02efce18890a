-- read_journal: one line of a journal, in order.
SELECT position, entry FROM journal WHERE task_uid = :uid AND line = :line ORDER BY position;
